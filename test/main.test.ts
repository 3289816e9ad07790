import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { test } from 'tap';
import { createEmbeddedStore } from '../src/store/embedded.js';
import { demoKeyHash } from './support/demo-key.js';
import { startGateway } from './support/gateway.js';
import { sharedSecret } from './support/gateway-config.js';

const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
const config = {
  upstreams: { local: { kind: 'simulator' } },
  models: { m: { protocols: ['chat'], targets: [{ upstream: 'local' }], price: {} } },
  groups: { default: { models: ['*'] } },
  keys: [{ id: 'team', hash: demoKeyHash, groups: ['default'] }],
};

interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(args: readonly string[], options: { env?: Record<string, string>; input?: string } = {}): Run {
  const cleared = { GATEWAY_CONFIG: '', HOST: '', PORT: '', WORKERS: '', LOG_LEVEL: '' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...cleared, ...options.env },
    input: options.input ?? '',
  });
  return { code: status, out: stdout, err: stderr };
}

test('help and version are printed', (t) => {
  t.match(run(['--help']), { code: 0, out: /^Usage: model-gateway/, err: '' });
  t.match(run(['start', '-h']), { code: 0, out: /^Usage: model-gateway/ });
  t.match(run(['--version']), { code: 0, out: /^\d+\.\d+\.\d+\n$/ });
  t.end();
});

test('too low a limit of open files is told in one line that says how to raise it', (t) => {
  const file = join(t.testdir({ 'gateway.json': JSON.stringify(config) }), 'gateway.json');
  const runWith = (limit: number, command: string) => {
    const line = `ulimit -n ${limit}; exec "${process.execPath}" "${main}" ${command}`;
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8', timeout: 20_000 });
    return { code: status, out: stdout, err: stderr };
  };
  const told = (limit: number) =>
    new RegExp(`^the limit of open files is ${limit}, .* needs 256.*: raise it \\(ulimit -n .*\\)\\n$`);
  for (const limit of [30, 40, 64, 128, 255])
    t.match(runWith(limit, `start --port 0 --config "${file}"`), { code: 1, out: /^$/, err: told(limit) });
  // From Node 22 on, these need fewer.
  for (const limit of [30, 64, 128])
    for (const command of [`check --config "${file}"`, 'key new']) {
      const { code, out, err } = runWith(limit, command);
      t.match(
        { code, out, err },
        code === 0 ? { out: /./, err: '' } : { code: 1, out: /^$/, err: told(limit) },
      );
    }
  t.match(runWith(200, 'key new'), { code: 0, out: /^key +sk-/ });
  t.match(runWith(200, '--version'), { code: 0, out: /^\d/ });
  t.match(runWith(255, `check --config "${file}"`), { code: 0 });
  t.match(runWith(256, 'start --config none.json'), { code: 1, err: /^none\.json cannot be read/ });
  t.end();
});

test('a command whose reader has seen enough ends without a word', (t) => {
  const file = t.testdir({ 'gateway.json': JSON.stringify(config) });
  const line = `"${process.execPath}" "${main}" check --config "${join(file, 'gateway.json')}" | true`;
  t.equal(spawnSync('sh', ['-c', line], { encoding: 'utf8' }).stderr, '');
  t.end();
});

test('a command that cannot write what it prints says so in one line, and fails', (t) => {
  const { status, stderr } = spawnSync('sh', ['-c', `"${process.execPath}" "${main}" key new > /dev/full`], {
    encoding: 'utf8',
  });
  t.match(stderr, /^what was asked for cannot be written: ENOSPC.*\n$/);
  t.equal(status, 1);
  t.end();
});

test('a command line that is not understood is refused with code 2 and a hint', (t) => {
  const cases: [string[], RegExp, Record<string, string>?][] = [
    [[], /^a command is needed/],
    [['strat'], /^there is no command "strat"/],
    [['start', 'now'], /^"now" is not understood here/],
    [['start', '--prot', '1'], /^Unknown option '--prot'/],
    [['start', '--port', '70000'], /^--port must be a number from 0 to 65535/],
    [['start'], /^PORT must be a number from 0 to 65535/, { PORT: 'http' }],
    [
      ['start', '--workers', '-1'],
      /^--workers needs a value; one that begins with "-" is written --workers=VALUE\nTry/,
    ],
    [['start', '--workers=-1'], /^--workers must be a number from 0 to 1024/],
    [['start'], /^WORKERS must be a number from 0 to 1024/, { WORKERS: '-1' }],
    [['start'], /^LOG_LEVEL must be one of trace, /, { LOG_LEVEL: 'loud' }],
    [['check'], /^check needs --config FILE/],
    [['key'], /^key needs "new" or "hash"/],
    [['key', 'new', 'extra'], /^"extra" is not understood here/],
    [['store', 'export', '--redis', 'nonsense'], /^--redis must be a URL such as redis:/],
    [['store', 'export', '--redis', 'http://a'], /^--redis must be a URL such as redis:/],
    [['key', 'hash'], /^key hash needs a key/],
    [['prices', 'import'], /^prices needs "import" and a FILE/],
    [['prices', 'import', 'list.json'], /^prices import needs --config FILE, or --into FILE/],
  ];
  for (const [args, message, env] of cases) {
    const { code, err } = run(args, env === undefined ? {} : { env });
    t.equal(code, 2, args.join(' '));
    t.match(err, message);
    t.match(err, /Try: model-gateway --help\n$/);
  }
  t.end();
});

test('a config in a pipe is waited for with a word', async (t) => {
  const file = join(t.testdir({}), 'pipe');
  execFileSync('mkfifo', [file]);
  const child = spawn(process.execPath, [main, 'check', '--config', file]);
  t.teardown(() => child.kill());
  const [said] = await once(child.stderr, 'data');
  t.equal(String(said), `${file} is a pipe: waiting for its writer\n`);
  await writeFile(file, JSON.stringify(config));
  t.match(String((await once(child.stdout, 'data'))[0]), /is valid: 1 upstream/);
});

test('without a config the gateway refuses any address but loopback', (t) => {
  t.match(run(['start', '--host', '0.0.0.0']), {
    code: 2,
    err: /loopback only, not on 0\.0\.0\.0 \(from --host\)/,
  });
  t.match(run(['start'], { env: { HOST: '::' } }), {
    code: 2,
    err: /loopback only, not on :: \(from HOST\)/,
  });
  const form = 'must be an address or the name of a host, without scheme and port';
  t.match(run(['start', '--host', '[::1]']), { code: 2, err: `--host ${form}` });
  t.match(run(['start'], { env: { HOST: 'http://a' } }), { code: 2, err: `HOST ${form}` });
  const folder = t.testdir({ 'good.json': JSON.stringify(config) });
  t.match(run(['start', '--config', join(folder, 'good.json')], { env: { HOST: 'nowhere.invalid' } }), {
    code: 1,
    err: /nowhere\.invalid:\d+ cannot be listened on \(E[A-Z_]+\); nowhere\.invalid is from HOST/,
  });
  t.end();
});

test('check explains every error with its path, and sums up a valid file', (t) => {
  const folder = t.testdir({
    'good.json': JSON.stringify(config),
    'bad.json': JSON.stringify({
      ...config,
      workers: 'all',
      keys: [{ ...config.keys[0], groups: ['none'] }],
    }),
    'redis.json': JSON.stringify({
      ...config,
      store: { kind: 'redis', url: 'redis://a' },
      secret: sharedSecret,
    }),
    'unshared.json': JSON.stringify({ ...config, store: { kind: 'postgres', url: 'postgres://u@a' } }),
    'broken.json': '{"upstreams": {}\n  "models"',
  });
  const file = (name: string): string => join(folder, name);
  t.strictSame(run(['check', '--config', file('good.json')]), {
    code: 0,
    out: `${file('good.json')} is valid: 1 upstream, 1 model, 1 group, 1 key\n`,
    err: '',
  });
  t.match(run(['check'], { env: { GATEWAY_CONFIG: file('good.json') } }), { code: 0 });
  t.match(run(['check', '--config', file('redis.json')]), {
    code: 1,
    err: /"model-gateway store export --redis URL"/,
  });
  t.match(run(['check', '--config', file('unshared.json')]), {
    code: 1,
    err: /unshared\.json: secret: is required where hosts share a store/,
  });
  const bad = ['workers: must be an integer', 'keys[0].groups[0]: no group is named "none"; there is default']
    .map((line) => `${file('bad.json')}: ${line}\n`)
    .join('');
  t.strictSame(run(['check', '--config', file('bad.json')]), { code: 1, out: '', err: bad });
  t.strictSame(run(['start', '--config', file('bad.json')]), { code: 1, out: '', err: bad });
  for (const more of [[], ['--into', file('good.json')]])
    t.match(run(['check', '--config', file('broken.json'), ...more]), {
      code: 1,
      err: `${file('broken.json')}: line 2, column 3: expected ","\n`,
    });
  const gone = { code: 1, out: '', err: `${file('gone.json')} cannot be read (ENOENT)\n` };
  t.strictSame(run(['check', '--config', file('gone.json')]), gone);
  t.strictSame(run(['prices', 'import', file('gone.json'), '--config', file('good.json')]), gone);
  t.strictSame(run(['prices', 'import', file('good.json'), '--config', file('gone.json')]), gone);
  t.end();
});

test('a store is exported, put into another one, and copied', async (t) => {
  const folder = t.testdir({});
  const file = (name: string): string => join(folder, name);
  for (const name of ['one', 'two', 'copy']) {
    const store = { kind: 'embedded', path: file(name) };
    writeFileSync(file(`${name}.json`), JSON.stringify({ ...config, store }));
  }
  // A disk that others keep busy may take longer than a call may wait for it.
  const store = createEmbeddedStore({ path: file('one'), timeoutMs: 300_000 });
  await store.create('tasks', 'a', 'value', 60_000);
  await store.close();
  const dump = run(['store', 'export', '--config', file('one.json')]);
  t.match(dump, {
    code: 0,
    err: '',
    out: /^\{"type":"model-gateway store".*\n.*"id":"a".*\n.*"end","entries":1\}\n$/,
  });
  t.strictSame(run(['store', 'import', '--config', file('two.json')], { input: dump.out }), {
    code: 0,
    out: '1 entries are in the store\n',
    err: '',
  });
  t.match(run(['store', 'import', '--config', file('two.json')], { input: dump.out }), {
    code: 1,
    err: /^there is something in .*two already\n$/,
  });
  t.match(run(['store', 'backup', '--config', file('two.json'), '--to', file('copy')]), { code: 0, out: '' });
  t.equal(run(['store', 'export', '--config', file('copy.json')]).out, dump.out);
  t.match(run(['store', 'export']), { code: 2, err: /needs --config/ });
  t.match(run(['store', 'backup', '--config', file('two.json')]), { code: 2, err: /needs --to/ });
  t.match(run(['store', 'move', '--config', file('two.json')]), {
    code: 2,
    err: /"export", "import" or "backup"/,
  });
});

test('prices are found in a list, and printed or written into the config, where comments stay', (t) => {
  const list = {
    'real-1': {
      litellm_provider: 'openai',
      mode: 'chat',
      input_cost_per_token: 2.5e-7,
      output_cost_per_token: 2e-6,
    },
    other: { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, odd_cost_per_thing: 3 },
  };
  const models = {
    ...config.models,
    a: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'real-1' }] },
    other: { protocols: ['chat'], targets: [{ upstream: 'local' }] },
    unlisted: { protocols: ['chat'], targets: [{ upstream: 'local' }] },
  };
  const folder = t.testdir({
    'config.json': `// ours\n${JSON.stringify({ ...config, models }, null, 2)}\n`,
    'list.json': JSON.stringify(list),
    'text.json': 'no list',
  });
  const file = (name: string): string => join(folder, name);
  const printed = run(['prices', 'import', file('list.json'), '--config', file('config.json')]);
  t.same(JSON.parse(printed.out), {
    models: { a: { price: { input: 0.25, output: 2 } }, other: { price: { input: 1, output: 1 } } },
  });
  t.match(printed.err, /models\.m has a price and keeps it/);
  t.match(printed.err, /models\.other is priced without odd_cost_per_thing/);
  t.match(printed.err, /no price for unlisted/);
  const written = run(['prices', 'import', file('list.json'), '--into', file('config.json')]);
  t.match(written, { code: 0, out: /has prices from the list for 2 models\n$/ });
  const text = readFileSync(file('config.json'), 'utf8');
  t.ok(text.startsWith('// ours\n'));
  const one = JSON.stringify({ 'real-1': list['real-1'] });
  writeFileSync(file('one.json'), one);
  const replaced = run(['prices', 'import', file('one.json'), '--into', file('config.json'), '--replace']);
  t.match(replaced, { code: 0, out: /has prices from the list for 1 model\n$/ });
  t.match(run(['check', '--config', file('config.json')]), {
    code: 0,
    out: /note: no price is set for unlisted: their calls are charged nothing/,
  });
  t.match(run(['prices', 'import', file('text.json'), '--config', file('config.json')]), {
    code: 1,
    err: `${file('text.json')}: the list of prices is not a JSON object\n`,
  });
  t.end();
});

test('a new key and its hash belong together, however the hash is asked for', (t) => {
  const { code, out } = run(['key', 'new']);
  t.equal(code, 0);
  const [, key = '', made = ''] = /^key {3}(sk-\S+)\nhash {2}(sha256:[0-9a-f]{64})\n$/.exec(out) ?? [];
  t.equal(run(['key', 'hash', key]).out, `${made}\n`);
  t.equal(run(['key', 'hash'], { input: `${key}\n` }).out, `${made}\n`);
  t.equal(run(['key', 'hash', 'sk-demo']).out, `${demoKeyHash}\n`);
  t.end();
});

test("the operators' line of the demo banner leads to the console, and its token opens it", async (t) => {
  const gateway = await startGateway(t, { workers: 1 });
  const find = () => gateway.logs.find((line) => line.startsWith('  Operators '));
  await gateway.until(() => find() !== undefined);
  const line = /^ {2}Operators {3}(http:\S+\/) \(console, metrics\), with the token (\S+)$/;
  const [, url = '', token = ''] = line.exec(find() ?? '') ?? [];
  const page = await fetch(url);
  t.equal(page.status, 200);
  t.match(page.headers.get('content-type'), 'text/html');
  t.match(await page.text(), '<!doctype html>');
  const models = await fetch(`${url}playground/models`, { headers: { authorization: `Bearer ${token}` } });
  t.match(await models.json(), { demoKey: 'sk-demo', models: [{ name: 'sim-text' }] });
});

test('the curl of the demo banner is answered, and the log says where the gateway listens', async (t) => {
  const gateway = await startGateway(t, { workers: 1 });
  await gateway.until(() => gateway.logs.some((line) => line.includes('curl ')));
  const curl = gateway.logs.find((line) => line.includes('curl ')) ?? '';
  const [, url = '', body = ''] = /curl (\S+) .* -d '(.*)'$/.exec(curl) ?? [];
  const headers = [...curl.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  const answer = await fetch(url, { method: 'POST', headers: Object.fromEntries(headers), body });
  t.equal(answer.status, 200);
  t.match(await answer.json(), { choices: [{ message: { content: /Hello/ } }] });
  const entry = await gateway.untilLogged((each) => each.msg === 'listening');
  t.match(entry, { url: gateway.baseUrl, port: gateway.port, workers: [...gateway.workerPids()] });
});

test('prices are written into the file that a link leads to', (t) => {
  const folder = t.testdir({
    'real.json': JSON.stringify({ models: { a: { targets: [] } } }),
    'list.json': JSON.stringify({ a: { input_cost_per_token: 1e-6 } }),
    'config.json': t.fixture('symlink', 'real.json'),
  });
  const [link, real] = [join(folder, 'config.json'), join(folder, 'real.json')];
  t.match(run(['prices', 'import', join(folder, 'list.json'), '--into', link]), { code: 0 });
  t.ok(lstatSync(link).isSymbolicLink());
  t.strictSame(JSON.parse(readFileSync(real, 'utf8')), {
    models: { a: { targets: [], price: { input: 1 } } },
  });
  t.strictSame(readdirSync(folder).sort(), ['config.json', 'list.json', 'real.json']);
  t.end();
});

t.end();
