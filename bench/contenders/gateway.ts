import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callerAt } from '../callers.js';
import { certificateFiles } from '../certificate.js';
import { freePort, untilListening } from '../ports.js';
import { type Process, startProcess } from '../proc.js';
import { type Viewer, watchConsole } from './console.js';
import type { Contender, Setup } from './contender.js';

/** More than any work opens: with the default, the thousands of streams of one work would queue for a connection. */
const maxConnections = 32_768;

const adminToken = 'a-token-of-operators';

const textProtocols = ['chat', 'responses', 'messages', 'generateContent'];
const mediaProtocols = ['audio', 'video'];

/** Where its models are offered: only where the work calls them, so that revisions that know fewer can be raced. */
function protocolsFor({ answer }: Setup): readonly string[] {
  if (answer === 'media') return mediaProtocols;
  return answer === 'realtime' ? ['realtime'] : textProtocols;
}

/** What is counted of calls. */
export interface Metering {
  /** Of every key; none unless given. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Calls have lines in the ledger; where nothing is said, as the gateway has it. */
  readonly ledger?: boolean;
  /** Calls have a price, and are charged to a budget of their key that none reaches. */
  readonly budget?: boolean;
}

/** Limits of all kinds. */
export const unreachedLimits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrent: 1e6 };

const price = { input: 1.25, output: 10 };
const unreachedBudget = { usd: 1e9, per: 'month' };

/** The operators' listener. */
interface Admin {
  readonly port: number;
  readonly token: string;
}

/**
 * The config file of the gateway, in which every key may use every model.
 * @param store folder for its ledger and its tasks
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
    // Not that of another contender: one of those who share a store does work for all of them.
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
 * The gateway from a compiled tree.
 * @param plan `main` is the path of its compiled main.js; with `console` somebody watches its console all the time
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

/** A gateway with a config file, once it listens. @param main path of its compiled main.js */
export async function startGateway(
  setup: Setup,
  file: string,
  port: number,
  plan: {
    readonly name: string;
    readonly main: string;
    readonly logs: boolean;
    /** Beside the variables that it has anyway. */
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

/** A gateway whose console is open from now on until it is stopped. */
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
