import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as anthropic from 'anthropic1';
import * as cohere from 'cohere-ai';
import * as genai from 'genai3';
import * as openai from 'openai7';
import { test } from 'tap';
import { demoConfig, demoKeys } from '../../src/config/demo.js';
import { defaults } from '../../src/config/resolve.js';
import { startDemo } from '../suites/demo.js';

const run = promisify(execFile);

/** The repository, from `dist*` where this file runs compiled. */
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const readme = readFileSync(resolve(root, 'README.md'), 'utf8');
const calling = sectionOf('Calling it');
const demoUrl = `http://${defaults.host}:${defaults.port}`;

/** The text of a section up to the next of its level. */
function sectionOf(title: string): string {
  const [, text = ''] = readme.split(`\n## ${title}\n`);
  return text.split('\n## ')[0] ?? '';
}

/** The code blocks of a language in a text. */
function blocksOf(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  );
}

const shell = blocksOf(calling, 'sh').join('');
/** A command begins at the start of a line; the lines that belong to it are indented. */
const commandPattern = /^curl .*\n(?:[ \t]+.*\n)*/gm;
const commands = shell.match(commandPattern) ?? [];

/** The values of an answer: one, or the data of each event of a stream. */
function valuesOf(answer: string): unknown[] {
  if (!/^(data|event):/.test(answer)) return [JSON.parse(answer)];
  const events = answer.split('\n\n').filter((event) => event !== '');
  return events.map((event) => {
    const data = /^data: (.*)$/m.exec(event)?.[1] ?? '';
    return data === '[DONE]' ? data : (JSON.parse(data) as unknown);
  });
}

test('the shell block is commands, and what they need', async (t) => {
  const rest = shell.replaceAll(commandPattern, '').split('\n');
  const others = rest.filter((line) => line !== '' && !line.startsWith('# '));
  t.strictSame(others, [`export BASE=${demoUrl} KEY=${demoKeys.default}`]);
  t.ok(commands.length >= 15, `${commands.length} commands`);
});

test('every curl command works as it stands', {
  skip: spawnSync('curl', ['--version']).status === 0 ? false : 'curl is not installed',
}, async (t) => {
  const { url } = await startDemo(t);
  const cwd = t.testdir();
  const env: Record<string, string | undefined> = {
    PATH: process.env.PATH,
    BASE: url,
    KEY: demoKeys.default,
    NO_PROXY: '*',
    CURL_HOME: '/dev/null',
  };
  for (const command of commands) {
    if (command.includes('/content')) await finished(url, env.ID ?? '');
    const quiet = `${command.trimEnd()} -s -S -w '\\n%{http_code}'`;
    const { stdout } = await run('sh', ['-c', quiet], { env, cwd });
    const end = stdout.lastIndexOf('\n');
    const name = command.split('\n').slice(0, 2).join(' ');
    t.equal(stdout.slice(end + 1), '200', name);
    const [, file] = / -o ([\w.]+)/.exec(command) ?? [];
    if (file !== undefined) {
      t.ok(statSync(resolve(cwd, file)).size > 1000, file);
      continue;
    }
    const values = valuesOf(stdout.slice(0, end));
    t.ok(values.length > (command.startsWith('curl -N ') ? 1 : 0), name);
    for (const value of values) t.notMatch(value, { error: Object }, name);
    if (command.includes('$BASE/v1/videos ')) env.ID = (values[0] as { id: string }).id;
    if (command.includes('"tool_choice":"required"'))
      t.match(values[0], { choices: [{ message: { tool_calls: [{ function: { name: String } }] } }] }, name);
  }
});

/** Resolves when the video task is finished. */
async function finished(url: string, id: string): Promise<void> {
  const headers = { authorization: `Bearer ${demoKeys.default}` };
  for (;;) {
    const answer = await fetch(`${url}/v1/videos/${id}`, { headers });
    const { status } = (await answer.json()) as { status?: string };
    if (status === 'completed') return;
    if (status !== 'queued' && status !== 'in_progress') throw new Error(`the task is ${status}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

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

const script = blocksOf(calling, 'ts').join('');

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
  for (const [url] of calling.matchAll(/http:\/\/[^/\s"']+/g)) t.equal(url, demoUrl);
  for (const [key] of calling.matchAll(/\bsk-[\w-]+/g)) t.equal(key, demoKeys.default);
});
