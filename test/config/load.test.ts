import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { usualConnections } from '../../src/config/descriptors.js';
import { loadConfig, parseConfig } from '../../src/config/load.js';
import { ConfigError, formatProblem } from '../../src/config/problem.js';
import { sharedSecret } from '../support/gateway-config.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { badConfigs, hash, secret } from './bad-configs.js';
import { badRules } from './bad-rules.js';

function validConfig() {
  return {
    secret: sharedSecret,
    listen: { host: '127.0.0.1', port: 9000 },
    upstreams: {
      main: { kind: 'chat', baseUrl: 'https://api.example.com/v1/', apiKeys: [secret] },
      claude: { kind: 'messages', baseUrl: 'https://messages.example.com' },
      local: { kind: 'simulator' },
    },
    models: { 'gpt-x': { protocols: ['chat'], targets: [{ upstream: 'main' }] } },
    groups: { default: { models: ['*'] }, trial: { models: ['gpt-x'] } },
    keys: [{ id: 'a', hash, groups: ['default'] }],
  };
}

type Config = ReturnType<typeof validConfig>;

/** Sets a value deep in a config: `put(config, 'upstreams/main/kind', 'x')`; undefined removes. */
function put(config: Config, path: string, value: unknown): void {
  const names = path.split('/');
  const last = names.pop() ?? '';
  const owner = names.reduce<object>((object, name) => Reflect.get(object, name) as object, config);
  if (value === undefined) Reflect.deleteProperty(owner, last);
  else Reflect.set(owner, last, value);
}

function problemsOf(config: unknown, environment: Record<string, string> = {}): string[] {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  try {
    parseConfig(text, { environment, directory: import.meta.dirname, created: 1 });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(formatProblem);
  }
}

for (const { at, value, problems } of [...badConfigs, ...badRules]) {
  test(`refused: ${problems[0]}`, (t) => {
    const config = validConfig();
    put(config, at, value);
    t.strictSame(problemsOf(config), problems);
    t.notOk(problems.join().includes(secret), 'no secret is shown');
    t.end();
  });
}

test('the config that every case starts from is valid', (t) => {
  t.strictSame(problemsOf(validConfig()), []);
  t.end();
});

test('a path that is no operation of a vendor may be where an upstream is', (t) => {
  for (const path of [
    'models/qwen3:8b',
    'models/llama3:latest/',
    'responses',
    'team/messages',
    'v1/messages-eu',
  ]) {
    const config = validConfig();
    put(config, 'upstreams/claude/baseUrl', `https://messages.example.com/${path}`);
    t.strictSame(problemsOf(config), [], path);
  }
  t.end();
});

test('conversations are kept unless said otherwise, by every kind of store', (t) => {
  const kept = (more: object) => {
    const text = JSON.stringify({ ...validConfig(), ...more });
    return parseConfig(text, { environment: {}, directory: '.', created: 1 }).conversations;
  };
  const store = { kind: 'postgres', url: 'postgres://a@b' };
  t.match(kept({}), { hours: 24, keyBytes: 67_108_864, bytes: 1_073_741_824, recordBytes: 8_388_608 });
  t.match(kept({ conversations: { hours: 1 } }), { hours: 1, keyBytes: 67_108_864 });
  t.equal(kept({ conversations: 'off' }), null);
  t.match(kept({ store }), { hours: 24 });
  t.equal(kept({ store, conversations: 'off' }), null);
  t.end();
});

test('what is wrong with the settings of conversations is said of each', (t) => {
  const problems = (conversations: unknown) => problemsOf({ ...validConfig(), conversations });
  const form = ['conversations: must be "off" or an object'];
  for (const value of ['on', [], 5, null]) t.strictSame(problems(value), form);
  t.strictSame(problems({ hours: 0, days: 1 }), [
    'conversations.days: unknown property; there are hours, keyBytes, bytes, recordBytes',
    'conversations.hours: must be >= 1',
  ]);
  t.strictSame(problems({ keyBytes: 10_000, bytes: 5000 }), [
    'conversations.recordBytes: must be at most keyBytes, which all turns of a key share',
    'conversations.keyBytes: must be at most bytes, which all keys share',
  ]);
  t.end();
});

test('without their store, rates are open and budgets are closed unless said otherwise', (t) => {
  const outageOf = (outage?: object) =>
    parseConfig(JSON.stringify({ ...validConfig(), outage }), {
      environment: {},
      directory: '.',
      created: 1,
    }).outage;
  t.strictSame(outageOf(), { budgets: 'closed', rates: 'open' });
  t.strictSame(outageOf({ rates: 'closed' }), { budgets: 'closed', rates: 'closed' });
  t.end();
});

test('problems of every step are told at once, each place once', (t) => {
  const config = validConfig();
  put(config, 'upstreams/main/apiKeys', ['$' + '{GONE}']);
  put(config, 'workers', 'many');
  put(config, 'models/gpt-x/targets/0/upstream', 'mian');
  put(config, 'extra', true);
  const text = JSON.stringify(config).replace('"trial":', '"default":{"models":[]},"trial":');
  const column = text.lastIndexOf('"default":{') + 1;
  t.strictSame(problemsOf(text).sort(), [
    'extra: unknown property',
    `groups.default: this name is given twice (again at line 1, column ${column})`,
    'models.gpt-x.targets[0].upstream: no upstream is named "mian"; did you mean "main"?',
    'upstreams.main.apiKeys[0]: the environment variable GONE is not set',
    'workers: must be an integer',
  ]);
  t.end();
});

test('more than a handful of problems of the shape are all told', (t) => {
  const config = validConfig();
  for (let index = 0; index < 50; index += 1) put(config, `extra${index}`, index);
  t.equal(problemsOf(config).length, 50);
  t.end();
});

test('a name that came from the environment is not repeated', (t) => {
  const config = validConfig();
  put(config, 'models/gpt-x/targets/0/upstream', '$' + '{SECRET}');
  t.strictSame(problemsOf(config, { SECRET: secret }), [
    'models.gpt-x.targets[0].upstream: no upstream has the name that the environment or a file gave',
  ]);
  t.end();
});

test('files that are no object are refused without a crash', (t) => {
  for (const text of ['null', '[]', '1', '"x"']) t.strictSame(problemsOf(text), ['must be an object'], text);
  t.strictSame(problemsOf('{"upstreams": [], "models": 1, "groups": null, "keys": {}}'), [
    'upstreams: must be an object',
    'models: must be an object',
    'groups: must be an object',
    'keys: must be an array',
  ]);
  t.end();
});

test('defaults are filled in, and what the file says wins', (t) => {
  const text = JSON.stringify({ ...validConfig(), timeouts: { idleMs: 5 }, vendors: { vendork: [] } });
  const config = parseConfig(text, { environment: {}, directory: '.', created: 7 });
  t.strictSame(config.listen, {
    host: '127.0.0.1',
    port: 9000,
    tls: null,
    publicUrl: null,
    trustedProxies: null,
    cors: null,
  });
  t.match(config.timeouts, { idleMs: 5, connectMs: 3000, drainMs: 600_000, keepAliveMs: 15_000 });
  t.match(config.limits, { bodyBytes: 33_554_432, bufferedBytes: 1_073_741_824 });
  t.strictSame(config.vendors.vendork, []);
  t.strictSame(config.vendors.vendorc, ['anthropic']);
  t.match(config.models[0], {
    created: 7,
    price: null,
    targets: [{ model: 'gpt-x', priority: 0, weight: 1 }],
  });
  t.match(config.upstreams[0], {
    maxConnections: usualConnections,
    maxWaiting: 10_000,
    tls: { ca: null, verify: true },
  });
  t.strictSame(JSON.parse(JSON.stringify(config)), config, 'it survives the way to the workers');
  t.end();
});

test('a store is resolved to where it is', (t) => {
  const storeOf = (store?: unknown, environment = {}) =>
    parseConfig(JSON.stringify({ ...validConfig(), store }), {
      environment,
      directory: '/etc/gateway',
      created: 7,
    }).store;
  t.strictSame(storeOf(), { kind: 'embedded', path: '/etc/gateway/data', taskDays: 7 });
  t.strictSame(storeOf({ kind: 'embedded', path: '/var/data', taskDays: 30 }), {
    kind: 'embedded',
    path: '/var/data',
    taskDays: 30,
  });
  const postgres = {
    kind: 'postgres',
    host: 'a',
    port: 5432,
    others: [],
    database: 'gate',
    username: 'me',
    password: secret,
    tls: 'verified',
    schema: 'gateway',
    timeoutMs: 2000,
    taskDays: 7,
  };
  const url = `postgres://me:${secret}@a/gate?sslmode=verify-full`;
  t.strictSame(storeOf({ kind: 'postgres', url: '$' + '{URL}' }, { URL: url }), postgres);
  const said = { schema: 'x', timeoutMs: 50, taskDays: 1 };
  t.strictSame(storeOf({ kind: 'postgres', url, ...said }), { ...postgres, ...said });
  t.end();
});

test('a file is read, with the files that it names beside it', (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'gateway.json');
  const config = validConfig();
  put(config, 'upstreams/main/tls', { ca: 'ca.pem' });
  writeFileSync(path, JSON.stringify(config));
  writeFileSync(join(folder, 'ca.pem'), 'no certificate');
  t.throws(() => loadConfig(path, {}), { message: 'upstreams.main.tls.ca: holds no PEM certificate' });
  const gone = join(folder, 'gone.json');
  t.throws(() => loadConfig(gone, {}), { message: `${gone} cannot be read (ENOENT)` });
  t.end();
});

test('a file in another encoding than UTF-8 is refused, since its names and secrets would become other ones', (t) => {
  const path = join(temporaryFolder(t), 'gateway.json');
  const text = `{\n"groups": {"caf\u00e9": {}}}`;
  writeFileSync(path, Buffer.from(text, 'latin1'));
  t.throws(() => loadConfig(path, {}), {
    message: 'line 2: the file is not in UTF-8: save it in that encoding',
  });
  writeFileSync(path, Buffer.from(`\ufeff${text}`, 'utf16le'));
  t.throws(() => loadConfig(path, {}), { message: /^line 1: the file is not in UTF-8/ });
  t.end();
});

test('a value of the wrong form that the environment gives is told as such', (t) => {
  const config = validConfig();
  put(config, 'upstreams/main/apiKeys', ['$' + '{NONE}']);
  put(config, 'listen/port', '$' + '{PORT}');
  const path = join(temporaryFolder(t), 'gateway.json');
  writeFileSync(path, JSON.stringify(config));
  t.throws(() => loadConfig(path, { NONE: '', PORT: '8080' }), {
    message:
      'listen.port: must be an integer, and a reference gives a string\n' +
      'upstreams.main.apiKeys[0]: must not be empty, as the environment variable or the file is that it names',
  });
  t.end();
});

test('of very many problems the first are listed, and the last line says how many there are more', (t) => {
  const groups = Object.fromEntries(Array.from({ length: 800 }, (_, index) => [`g${index}`, 5]));
  const found = problemsOf({ ...validConfig(), groups });
  t.equal(found.length, 501);
  t.match(found[499], /^groups\.g\d+: /);
  t.match(found[500], /^and 3\d\d more problems$/);
  t.end();
});

test('of more problems than are searched for the last line says that there may be more', (t) => {
  const found = problemsOf({ ...validConfig(), keys: Array.from({ length: 50_000 }, () => ({})) });
  t.equal(found.length, 501);
  t.equal(found[0], 'keys[0].id: is required');
  t.match(found[500], /^and at least \d{4,6} more problems$/);
  t.end();
});

test('problems of more places than a call takes arguments are listed', (t) => {
  const names = Array.from({ length: 200_000 }, () => '$' + '{UNSET}');
  const found = problemsOf({ ...validConfig(), groups: { default: { models: names } } });
  t.equal(found.length, 501);
  t.equal(found[500], 'and 199500 more problems');
  t.end();
});

test('the priority price is that of the fast tier, but not where fast is a speed of messages', (t) => {
  const config = validConfig();
  const price = { input: 2, tiers: { priority: 0 } };
  const cost = { input: 1, tiers: { priority: 0.5 } };
  const targets = ['main', 'claude'].map((upstream) => ({ upstream, cost }));
  put(config, 'groups/trial', undefined);
  put(config, 'models', {
    openai: { protocols: ['chat'], targets: targets.slice(0, 1), price },
    claude: { protocols: ['chat'], targets: targets.slice(1), price },
    either: { protocols: ['chat'], targets, price },
    listed: { protocols: ['chat'], targets, price: { input: 2, tiers: { priority: 0, fast: 6 } } },
  });
  const { models } = parseConfig(JSON.stringify(config), {
    environment: {},
    directory: import.meta.dirname,
    created: 1,
  });
  const ofFast = Object.fromEntries(
    models.map((model) => [model.name, [model.price, ...model.targets.map((target) => target.cost)]]),
  );
  t.match(ofFast, {
    openai: [{ tiers: { fast: 0 } }, { tiers: { fast: 0.5 } }],
    claude: [{ tiers: { fast: undefined } }, { tiers: { fast: undefined } }],
    either: [{ tiers: { fast: undefined } }, { tiers: { fast: 0.5 } }, { tiers: { fast: undefined } }],
    listed: [{ tiers: { fast: 6 } }, {}, {}],
  });
  t.end();
});
