import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callerAt } from '../callers.js';
import { certificateFiles } from '../certificate.js';
import { freePort, untilListening } from '../ports.js';
import { type Process, startProcess } from '../proc.js';
import { type Viewer, watchConsole } from './console.js';
import type { Contender, Setup } from './contender.js';

/** More than any work opens. With the default, the thousands of streams of one work would wait for connections. */
const maxConnections = 32_768;

const adminToken = 'a-token-of-operators';

const textProtocols = ['chat', 'responses', 'messages', 'generateContent'];
const mediaProtocols = ['audio', 'video'];

/** Protocols in which its models are offered. Others are left out, so that revisions without them can be raced. */
function protocolsFor({ answer }: Setup): readonly string[] {
  if (answer === 'media') return mediaProtocols;
  return answer === 'realtime' ? ['realtime'] : textProtocols;
}

/** What is counted of calls. */
export interface Metering {
  /** Limits of every key; none by default. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Whether calls have lines in the ledger; the gateway's default if it is not set. */
  readonly ledger?: boolean;
  /** Calls have a price, and are charged to a budget of their key that is never exhausted. */
  readonly budget?: boolean;
}

/** Limits of all kinds, which no key reaches. */
export const unreachedLimits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrent: 1e6 };

const price = { input: 1.25, output: 10 };
const unreachedBudget = { usd: 1e9, per: 'month' };

/** Port of the operators' listener. */
interface Admin {
  readonly port: number;
  readonly token: string;
}

/**
 * Makes the gateway's config file, in which every key may use every model.
 * @param store folder of its ledger and its tasks
 */
export function gatewayConfig(
  setup: Setup,
  store: string,
  metering: Metering,
  admin: Admin | null = null,
): string {
  const { ledger, budget = false, limits = setup.limits ? unreachedLimits : undefined } = metering;
  const { keys, models } = setup.catalogue ?? { keys: 1, models: 1 };
  const modelNames = Array.from({ length: models }, (_, index) => callerAt(index).model);
  const hash = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`;
  const { cert, key, ca } = certificateFiles(setup.directory);
  return JSON.stringify({
    // Each contender has its own store: of several that shared one, one would do the periodic work of all.
    store: { kind: 'embedded', path: store },
    ...(setup.answer === 'realtime' ? { sockets: { perKey: maxConnections } } : {}),
    ...(ledger === false ? { usage: { ledger } } : {}),
    ...(admin === null ? {} : { admin }),
    listen: { host: '127.0.0.1', ...(setup.clientTls ? { tls: { cert, key } } : {}) },
    upstreams: {
      bench: {
        kind: 'chat',
        baseUrl: `${setup.upstreamTls ? 'https' : 'http'}://127.0.0.1:${setup.upstreamPort}/${setup.answer}/v1`,
        apiKeys: ['sk-upstream'],
        ...(setup.upstreamTls ? { tls: { ca } } : {}),
        maxConnections,
      },
    },
    models: Object.fromEntries(
      modelNames.map((model) => [
        model,
        {
          protocols: protocolsFor(setup),
          targets: [{ upstream: 'bench', model }],
          ...(budget ? { price } : {}),
        },
      ]),
    ),
    groups: { default: { models: ['*'] } },
    keys: Array.from({ length: keys }, (_, index) => ({
      id: `bench-${index}`,
      hash: hash(callerAt(index).key),
      groups: ['default'],
      ...(limits === undefined ? {} : { limits }),
      ...(budget ? { budget: unreachedBudget } : {}),
    })),
  });
}

function environment(logs: boolean): NodeJS.ProcessEnv {
  const { GATEWAY_CONFIG: _config, PORT: _port, HOST: _host, WORKERS: _workers, ...rest } = process.env;
  return { ...rest, NODE_ENV: 'production', LOG_LEVEL: logs ? 'info' : 'silent' };
}

/**
 * Makes a contender of a compiled gateway.
 * @param plan `main` is the path of its compiled main.js; with `console`, its console is viewed all the time
 */
export function gateway(
  plan: Metering & {
    readonly name: string;
    readonly main: string;
    readonly logs: boolean;
    readonly console?: boolean;
  },
): Contender {
  return {
    name: plan.name,
    async start(setup) {
      const port = await freePort();
      const admin = plan.console ? { port: await freePort(), token: adminToken } : null;
      const file = join(setup.directory, `gateway-${port}.json`);
      writeFileSync(file, gatewayConfig(setup, join(setup.directory, `store-${port}`), plan, admin));
      const server = await startGateway(setup, file, port, plan);
      return {
        port,
        secure: setup.clientTls ?? false,
        prefix: '',
        path: '/v1/chat/completions',
        process: admin === null ? server : await watched(server, admin),
      };
    },
  };
}

/** Starts a gateway with a config file. @param main path of its compiled main.js @returns when it listens */
export async function startGateway(
  setup: Setup,
  file: string,
  port: number,
  plan: {
    readonly name: string;
    readonly main: string;
    readonly logs: boolean;
    /** Variables in addition to those of this process. */
    readonly env?: NodeJS.ProcessEnv;
  },
): Promise<Process> {
  const { name, main, logs, env } = plan;
  const at = ['--host', '127.0.0.1', '--port', `${port}`];
  const server = await startProcess({
    name,
    command: process.execPath,
    args: [main, 'start', '--config', file, ...at, '--workers', `${setup.workers ?? 1}`],
    core: setup.core,
    env: { ...environment(logs || setup.accessLog === true), ...env },
    cwd: setup.directory,
    outputFile: join(setup.directory, `${name}-${port}.log`),
  });
  await untilListening(port, server);
  return server;
}

/** Returns the same gateway, with its console open until it is stopped. */
async function watched(server: Process, { port, token }: Admin): Promise<Process> {
  const viewer: Viewer = await untilListening(port, server)
    .then(() => watchConsole(port, token))
    .catch(async (error: unknown) => {
      await server.stop();
      throw error;
    });
  return {
    ...server,
    async stop() {
      try {
        viewer.leave();
      } finally {
        await server.stop();
      }
    },
  };
}
