import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pixel } from '../suites/translation/image.js';
import { testKey } from '../support/gateway.js';

type AfterFailure = 'asks again' | 'tells of it';

/** An agent on the command line, at its defaults but for what is written here. */
export interface Agent {
  readonly name: string;
  /** Path of its program below `node_modules`. */
  readonly program: string;
  /**
   * Arguments for the first turn, and for one that goes on.
   * @param image a file in its project that it is to show the model, or null
   */
  turn(prompt: string, isFirst: boolean, image: string | null): readonly string[];
  /** What it does after an answer that breaks off, and after a 429 that asks for a second. */
  readonly afterCut: AfterFailure;
  readonly afterLimit: AfterFailure;
  /** Where the gateway is, the key, and what keeps it from calling anybody else. */
  environment(url: string): Readonly<Record<string, string>>;
  /** Files below its home. */
  files(url: string): Readonly<Record<string, string>>;
  /** What a native upstream refuses in its requests, after which it asks again with others. */
  readonly asksAgainAfter?: RegExp;
}

/** Models that agents ask for of themselves, besides those that are named here. */
export const agentModels: readonly string[] = [
  'claude-haiku-4-5-20251001',
  'claude-opus-5-5',
  'claude-sonnet-5',
  'gemini-3-flash-preview',
  'gemini-3.1-flash-lite',
  'gemini-3.1-pro-preview',
  'gemini-3.5-flash',
  'gemini-3.5-flash-lite',
  'gemini-3.8-flash',
  'gpt-6-luna',
  'gpt-6-sol',
  'gpt-6.1-sol',
  'gpt-6.2-sol',
];

const platform = `${process.platform}-${process.arch}`;

const codex: Agent = {
  name: 'codex',
  program: '@openai/codex/bin/codex.js',
  // It runs without a sandbox of its own, which needs rights that a container may not have.
  turn: (prompt, isFirst, image) => [
    'exec',
    '--skip-git-repo-check',
    '--sandbox',
    'danger-full-access',
    ...(isFirst ? [] : ['resume', '--last']),
    ...(image === null ? [] : ['--image', image]),
    '--',
    prompt,
  ],
  afterCut: 'asks again',
  afterLimit: 'asks again',
  environment: () => ({ GATEWAY_KEY: testKey }),
  files: (url) => ({
    '.codex/config.toml': `model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
`,
  }),
};

const claudeCode: Agent = {
  name: 'claude code',
  // It changes the beginning of its own conversations, also without a gateway, and then sends them without the thinking.
  asksAgainAfter: /The block is bound to a different conversation$/,
  program: `@anthropic-ai/claude-code-${platform}/claude`,
  turn: (prompt, isFirst, image) => [
    '-p',
    image === null ? prompt : `${prompt} @${image}`,
    ...(isFirst ? [] : ['--continue']),
    '--allowedTools',
    'Bash',
  ],
  afterCut: 'asks again',
  afterLimit: 'asks again',
  environment: (url) => ({
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: testKey,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }),
  files: () => ({}),
};

const geminiCli: Agent = {
  name: 'gemini cli',
  program: '@google/gemini-cli/bundle/gemini.js',
  turn: (prompt, isFirst, image) => [
    '--yolo',
    ...(isFirst ? [] : ['--resume', 'latest']),
    '-p',
    image === null ? prompt : `${prompt} @${image}`,
  ],
  // Its own list of errors after which it asks again (`RETRYABLE_NETWORK_CODES`) lacks `UND_ERR_SOCKET`, which its HTTP
  // client has for a connection that the other side closes: it is so with its vendor, too.
  afterCut: 'tells of it',
  afterLimit: 'asks again',
  environment: (url) => ({
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_API_KEY: testKey,
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
  }),
  files: () => ({
    '.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    }),
  }),
};

/** @param wire the API that it is told to call, which is of the provider that it names */
function copilot(wire: 'responses' | 'anthropic'): Agent {
  const isAnthropic = wire === 'anthropic';
  return {
    name: `copilot with ${wire}`,
    program: `@github/copilot-${platform}/copilot`,
    turn: (prompt, isFirst, image) => [
      '--allow-all-tools',
      ...(isFirst ? [] : ['--continue']),
      ...(image === null ? [] : ['--attachment', image]),
      '-p',
      prompt,
    ],
    afterCut: 'asks again',
    afterLimit: 'asks again',
    environment: (url) => ({
      COPILOT_PROVIDER_BASE_URL: isAnthropic ? url : `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: testKey,
      COPILOT_PROVIDER_TYPE: isAnthropic ? 'anthropic' : 'openai',
      ...(isAnthropic ? {} : { COPILOT_PROVIDER_WIRE_API: wire }),
      COPILOT_MODEL: isAnthropic ? 'claude-sonnet-5' : 'gpt-6-sol',
      COPILOT_OFFLINE: 'true',
    }),
    files: () => ({}),
  };
}

/** @param model with the provider before it */
function opencode(model: string): Agent {
  const provider = model.slice(0, model.indexOf('/'));
  const options = (url: string, path: string) => ({ options: { baseURL: url + path, apiKey: testKey } });
  return {
    name: `opencode with ${provider}`,
    program: `opencode-${platform}/bin/opencode`,
    turn: (prompt, isFirst, image) => [
      'run',
      ...(isFirst ? [] : ['--continue']),
      '-m',
      model,
      prompt,
      ...(image === null ? [] : ['--file', image]),
    ],
    // It knows an error after which it may ask again by its words.
    afterCut: 'asks again',
    afterLimit: 'asks again',
    environment: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    files: (url) => ({
      '.config/opencode/opencode.json': JSON.stringify({
        autoupdate: false,
        share: 'disabled',
        provider: {
          openai: options(url, '/v1'),
          anthropic: options(url, '/v1'),
          google: options(url, '/v1beta'),
          compatible: {
            npm: '@ai-sdk/openai-compatible',
            name: 'compatible',
            ...options(url, '/v1'),
            models: {
              'gpt-6-sol': { attachment: true, modalities: { input: ['text', 'image'], output: ['text'] } },
            },
          },
        },
      }),
    }),
  };
}

/** Each agent once. */
export const agents: readonly Agent[] = [
  codex,
  claudeCode,
  geminiCli,
  copilot('responses'),
  opencode('openai/gpt-6-sol'),
];

/** The same with providers that it has besides, which are the AI SDK's. */
export const otherProviders: readonly Agent[] = [
  opencode('anthropic/claude-sonnet-5'),
  opencode('google/gemini-3.8-flash'),
  opencode('compatible/gpt-6-sol'),
  copilot('anthropic'),
];

interface AgentRun {
  readonly modules: string;
  /** A folder of its own. */
  readonly home: string;
  readonly url: string;
  readonly prompt: string;
  readonly isFirst: boolean;
  /** Its project has a picture, which it is shown. */
  readonly withImage: boolean;
}

export interface AgentEnd {
  readonly code: number | null;
  readonly output: string;
  /** The end of what it said beside that. */
  readonly errors: string;
}

const timeoutMs = 120_000;
const imageFile = 'pixel.png';
const mostOutput = 1 << 20;

/** Runs an agent for a turn. It is killed with all that it has started once it has taken too long. @returns its end */
export function runAgent(
  agent: Agent,
  { modules, home, url, prompt, isFirst, withImage }: AgentRun,
): Promise<AgentEnd> {
  const cwd = join(home, 'project');
  mkdirSync(cwd, { recursive: true });
  for (const [path, text] of Object.entries(agent.files(url))) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  if (withImage) writeFileSync(join(cwd, imageFile), Buffer.from(pixel, 'base64'));
  const program = join(modules, agent.program);
  const [command, ...first] = program.endsWith('.js') ? [process.execPath, program] : [program];
  const child = spawn(command, [...first, ...agent.turn(prompt, isFirst, withImage ? imageFile : null)], {
    cwd,
    detached: true,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      LANG: 'C.UTF-8',
      // Whom they call besides the gateway is not there.
      HTTPS_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '127.0.0.1',
      ...agent.environment(url),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killAll = (): void => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // They have ended.
    }
  };
  const timer = setTimeout(killAll, timeoutMs);
  process.once('exit', killAll);
  let output = '';
  let errors = '';
  child.stdout.on('data', (piece: Buffer) => {
    output = `${output}${piece}`.slice(-mostOutput);
  });
  child.stderr.on('data', (piece: Buffer) => {
    errors = `${errors}${piece}`.slice(-4096);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      process.removeListener('exit', killAll);
      killAll();
      resolve({ code, output, errors });
    });
  });
}
