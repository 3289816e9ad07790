import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import * as anthropic from 'anthropic1';
import * as cohere from 'cohere-ai';
import * as genai from 'genai3';
import * as openai from 'openai7';
import { test } from 'tap';
import { demoConfig, demoKeys } from '../../src/config/demo.js';
import { defaults } from '../../src/config/resolve.js';
import { blocksOf, pages, root } from '../manual/pages.js';
import { startGateway } from '../support/gateway.js';

const run = promisify(execFile);

const demoUrl = `http://${defaults.host}:${defaults.port}`;
/** Pages whose commands are for the demo. */
const callingPages = ['README.md', 'src/manual/calling.md'];
/** Without the config that is written into a file, whose upstreams are not the demo's. */
const calling = callingPages
  .map((path) => pages.get(path) ?? '')
  .join('')
  .replaceAll(/<<'END'\n[\s\S]*?^END$/gm, '');
/** What begins so starts the gateway or runs the tests. */
const startLines = /^npm ci && npm .*$/gm;
const environmentLine = `export BASE=${demoUrl} KEY=${demoKeys.default}`;

/** The values of an answer: one, or the data of each event of a stream. */
function valuesOf(answer: string): unknown[] {
  if (!/^(data|event):/.test(answer)) return [JSON.parse(answer)];
  const events = answer.split('\n\n').filter((event) => event !== '');
  return events.map((event) => {
    const data = /^data: (.*)$/m.exec(event)?.[1] ?? '';
    return data === '[DONE]' ? data : (JSON.parse(data) as unknown);
  });
}

/** Stands before curl in the path: notes the arguments, the status and the answer of each call. */
const notingCurl = `#!/bin/sh
call="$CALLS/$(ls "$CALLS" | wc -l)"
mkdir "$call"
printf '%s\\n' "$@" > "$call/arguments"
"$CURL" -s -S -w '%{stderr}%{http_code}' "$@" 2> "$call/status" | tee "$call/answer"
`;

for (const path of callingPages) {
  test(`every command of ${path} works as it stands`, {
    skip: spawnSync('curl', ['--version']).status === 0 ? false : 'curl is not installed',
  }, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const cwd = t.testdir({ bin: {} });
    for (const name of ['node_modules', 'dist']) symlinkSync(join(root, name), join(cwd, name));
    writeFileSync(join(cwd, 'bin', 'curl'), notingCurl, { mode: 0o755 });
    const calls = join(cwd, 'calls');
    mkdirSync(calls);
    const script = blocksOf(path, 'sh').join('').replaceAll(startLines, '');
    t.equal(script.split(environmentLine).length, 2, 'it says once what it needs');
    const { stdout: curl } = await run('sh', ['-c', 'command -v curl']);
    const { stdout } = await run('sh', ['-e', '-c', script.replace(environmentLine, '')], {
      cwd,
      env: {
        PATH: `${join(cwd, 'bin')}:${process.env.PATH}`,
        CURL: curl.trim(),
        CALLS: calls,
        BASE: url,
        KEY: demoKeys.default,
        NO_PROXY: '*',
        CURL_HOME: '/dev/null',
      },
    });
    if (path === 'README.md') t.match(stdout, 'gateway.json is valid: 2 upstreams, 1 model, 1 group, 0 keys');
    const written = [...script.matchAll(/\bcurl\b/g)].length;
    const made = readdirSync(calls).sort((a, b) => Number(a) - Number(b));
    t.ok(made.length >= written && written >= 10, `${made.length} calls by ${written} commands`);
    for (const call of made) {
      const read = (name: string): string => readFileSync(join(calls, call, name), 'utf8');
      const given = read('arguments').trimEnd().split('\n');
      const name = given.slice(0, 3).join(' ');
      t.equal(read('status'), '200', name);
      const file = given[given.indexOf('-o') + 1];
      if (given.includes('-o') && file !== undefined) {
        t.ok(statSync(resolve(cwd, file)).size > 1000, file);
        continue;
      }
      const values = valuesOf(read('answer'));
      t.ok(values.length > (given.includes('-N') ? 1 : 0), name);
      for (const value of values) t.notMatch(value, { error: Object }, name);
      if (given.some((text) => text.includes('"tool_choice":"required"')))
        t.match(
          values[0],
          { choices: [{ message: { tool_calls: [{ function: { name: String } }] } }] },
          name,
        );
    }
  });
}

test('the config of the manual is valid', async (t) => {
  const [example = ''] = blocksOf('src/manual/config.md', 'json');
  const file = join(t.testdir({ 'gateway.json': example }), 'gateway.json');
  const { stdout } = await run(
    process.execPath,
    [join(root, 'dist/src/main.js'), 'check', '--config', file],
    {
      env: { ...process.env, MAIN_KEY: 'secret' },
    },
  );
  t.match(stdout, 'is valid: 2 upstreams, 1 model, 2 groups, 1 key');
});

interface Sdk {
  /** Name of the package in the registry. */
  readonly name: string;
  readonly installedAs: string;
  readonly module: object;
  /** Made as the snippets say. */
  readonly client: object;
}

const sdks: readonly Sdk[] = [
  {
    name: 'openai',
    installedAs: 'openai7',
    module: openai,
    client: new openai.OpenAI({ baseURL: `${demoUrl}/v1`, apiKey: demoKeys.default }),
  },
  {
    name: '@anthropic-ai/sdk',
    installedAs: 'anthropic1',
    module: anthropic,
    client: new anthropic.Anthropic({ baseURL: demoUrl, apiKey: demoKeys.default }),
  },
  {
    name: '@google/genai',
    installedAs: 'genai3',
    module: genai,
    client: new genai.GoogleGenAI({ apiKey: demoKeys.default, httpOptions: { baseUrl: demoUrl } }),
  },
  {
    name: 'cohere-ai',
    installedAs: 'cohere-ai',
    module: cohere,
    client: new cohere.CohereClient({ environment: demoUrl, token: demoKeys.default }),
  },
];
/** Packages that the tests do not install: their snippets are not looked at beyond the models. */
const notInstalled = ['@ai-sdk/openai', 'ai'];

const script = blocksOf('src/manual/calling.md', 'ts').join('');

/** What a dotted name leads to in an object. */
function memberAt(object: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], object);
}

test('the snippets import what the SDKs export', async (t) => {
  const imports = [...script.matchAll(/^import (?:(\w+)|\{ ([\w, ]+) \}) from '([^']+)';$/gm)];
  t.strictSame(
    imports.map(([, , , name]) => name).sort(),
    [...sdks.map(({ name }) => name), ...notInstalled].sort(),
  );
  for (const [, whole, named, name] of imports) {
    const sdk = sdks.find((each) => each.name === name);
    if (sdk === undefined) continue;
    const installed = readFileSync(resolve(root, 'node_modules', sdk.installedAs, 'package.json'), 'utf8');
    t.equal((JSON.parse(installed) as { name: string }).name, name);
    for (const exported of whole === undefined ? (named ?? '').split(', ') : ['default'])
      t.type(memberAt(sdk.module, exported), 'function', `${exported} of ${name}`);
  }
});

test('the calls of the snippets exist', async (t) => {
  const made = new Map<string, Sdk>();
  for (const [, variable = '', constructed = ''] of script.matchAll(/^const (\w+) = new (\w+)\(/gm)) {
    const sdk = sdks.find(({ module, client }) => {
      const exported = memberAt(module, constructed);
      return typeof exported === 'function' && client instanceof exported;
    });
    if (sdk === undefined) t.fail(`no SDK makes a ${constructed}`);
    else made.set(variable, sdk);
  }
  t.equal(made.size, sdks.length);
  const called = new Set<Sdk>();
  for (const [, variable = '', path = ''] of script.matchAll(/^await (\w+)\.([\w.]+)\(/gm)) {
    const sdk = made.get(variable);
    t.type(memberAt(sdk?.client, path), 'function', `${variable}.${path}`);
    if (sdk !== undefined) called.add(sdk);
  }
  t.equal(called.size, sdks.length, 'each of them is called');
});

test('every address, key and model is one of the demo', async (t) => {
  const { models } = demoConfig(1);
  const known = models.map(({ name }) => name);
  const named = [
    /"?\bmodel"?\s*[:=]\s*["']([^"']+)["']/g,
    /\/models\/([^:\s"]+):/g,
    /\bprovider\('([^']+)'\)/g,
  ].flatMap((pattern) => [...calling.matchAll(pattern)].map(([, name = '']) => name));
  t.ok(named.length >= 20, `${named.length} names`);
  for (const name of new Set(named)) t.ok(known.includes(name), name);
  for (const [url] of calling.matchAll(/http:\/\/[\w.:-]+/g)) t.equal(url, demoUrl);
  const keys: readonly string[] = Object.values(demoKeys);
  for (const [key] of calling.matchAll(/\bsk-[\w-]+/g)) t.ok(keys.includes(key), key);
});
