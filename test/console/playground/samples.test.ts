import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from 'tap';
import { demoKeys } from '../../../src/config/demo.js';
import type { Choice } from '../../../src/console/playground/choice.js';
import { codeSamples, type Samples } from '../../../src/console/playground/code/samples.js';
import { textProtocols } from '../../../src/conversation/request.js';
import { startGateway } from '../../support/gateway.js';
import { settingsWith, shownThinking } from './asked.js';

const run = promisify(execFile);
/** `dist`, from which scripts find the installed packages. */
const directory = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', '..');
const has = (command: string): boolean => spawnSync(command, ['--version']).status === 0;

/** What the snippets import, and what the tests have installed it as. */
const installedAs: Readonly<Record<string, string>> = {
  openai: 'openai7',
  '@anthropic-ai/sdk': 'anthropic1',
  '@google/genai': 'genai3',
};

const prompt = `What's "a gateway"? $HOME \`id\` \\ — 漢字\nsecond line`;
const image = {
  model: 'sim-image',
  size: '512x512',
  result: 'b64_json',
  ratio: '16:9',
  resolution: '1K',
} as const;
const speech = { model: 'sim-speech', voice: 'alloy', format: 'wav', speed: null };
const video = { model: 'sim-video', size: '1280x720', seconds: 5 };

interface Case {
  readonly name: string;
  readonly choice: Choice;
  /** The file that it writes; null where it prints. */
  readonly file: string | null;
}

const texts: readonly Case[] = textProtocols.flatMap((protocol) =>
  [true, false].map((stream) => ({
    name: `${protocol}${stream ? ', streamed' : ''}`,
    choice: {
      kind: 'chat',
      protocol,
      settings: settingsWith({
        stream,
        system: "Don't be long.",
        maxTokens: 2000,
        extra: shownThinking(protocol),
      }),
    },
    file: null,
  })),
);

const cases: readonly Case[] = [
  ...texts,
  { name: 'image', choice: { kind: 'image', protocol: 'images', settings: image }, file: 'image.png' },
  {
    name: 'image by its address',
    choice: { kind: 'image', protocol: 'images', settings: { ...image, result: 'url' } },
    file: null,
  },
  {
    name: 'image, input form',
    choice: { kind: 'image', protocol: 'imagesInput', settings: image },
    file: null,
  },
  {
    name: 'image, generateContent',
    choice: { kind: 'image', protocol: 'generateContent', settings: image },
    file: 'image.png',
  },
  { name: 'speech', choice: { kind: 'speech', protocol: 'speech', settings: speech }, file: 'speech.wav' },
  ...(['compat', 'generic', 'vendork', 'vendorj'] as const).map((protocol) => ({
    name: `video, ${protocol}`,
    choice: { kind: 'video', protocol, settings: video } as const,
    file: 'video.mp4',
  })),
];

const turns = [
  { role: 'user', text: "It's me" },
  { role: 'assistant', text: 'Hello.', calls: [] },
] as const;

function samplesOf(choice: Choice, url: string): Samples {
  return codeSamples({ choice, prompt, turns: choice.kind === 'chat' ? turns : [] }, url);
}

test('the TypeScript of every protocol runs, and has an answer', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const folder = mkdtempSync(join(directory, 'samples-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  for (const [index, { name, choice, file }] of cases.entries()) {
    const code = samplesOf(choice, url).typescript;
    t.notMatch(code, demoKeys.default);
    const script = join(folder, `${index}.mjs`);
    writeFileSync(
      script,
      code.replace(/ from '([^']+)';/g, (_, from: string) => ` from '${installedAs[from] ?? from}';`),
    );
    const env = { PATH: process.env.PATH, GATEWAY_KEY: demoKeys.default, NO_PROXY: '*' };
    const { stdout } = await run(process.execPath, [script], { cwd: folder, env });
    if (file === null) t.ok(stdout.trim().length > 20, `${name}: ${stdout.slice(0, 60)}`);
    else t.ok(statSync(join(folder, file)).size > 1000, name);
    if (file !== null) rmSync(join(folder, file));
  }
});

test('the curl of every protocol is answered 200', {
  skip: has('curl') ? false : 'curl is not installed',
}, async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const cwd = t.testdir();
  for (const { name, choice } of cases) {
    const code = samplesOf(choice, url).curl;
    t.notMatch(code, demoKeys.default);
    // The first command of a video; the others need the id of its answer.
    const [command = ''] = code.split('\n\n#');
    const env = {
      PATH: process.env.PATH,
      GATEWAY_KEY: demoKeys.default,
      NO_PROXY: '*',
      CURL_HOME: '/dev/null',
    };
    const quiet = `${command.trimEnd()} -s -S -w '\\n%{http_code}'`;
    const { stdout } = await run('sh', ['-c', quiet], { env, cwd, maxBuffer: 64 * 1024 * 1024 });
    t.equal(stdout.split('\n').at(-1), '200', `${name}: ${stdout.slice(0, 300)}`);
  }
  t.equal(readFileSync(join(cwd, 'speech.wav')).toString('latin1', 0, 4), 'RIFF');
});

test('the Python of every protocol can be read', {
  skip: has('python3') ? false : 'python3 is not installed',
}, async (t) => {
  const check = 'import ast, json, sys; [ast.parse(code) for code in json.load(sys.stdin)]';
  const codes = cases.map(({ choice }) => samplesOf(choice, 'http://127.0.0.1:8080').python);
  const { status, stderr } = spawnSync('python3', ['-c', check], { input: JSON.stringify(codes) });
  t.equal(status, 0, stderr.toString());
  for (const code of codes) t.match(code, 'os.environ["GATEWAY_KEY"]');
});
