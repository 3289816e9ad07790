import type { Test } from 'tap';
import { textProtocols } from '../../../src/conversation/request.js';
import { demoKeyHash } from '../../support/demo-key.js';
import { freePort } from '../../support/free-port.js';
import { type GatewayProcesses, startGateway } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';

export const adminToken = 'a-token-of-operators';
/** Keys of the config, by their ids, and what `model-gateway key hash` says of them. */
export const consoleKeys = { demo: 'sk-demo', trial: 'sk-demo-trial' } as const;
const hashes = {
  demo: demoKeyHash,
  trial: 'sha256:6853e683819725d4d96f504b46d7c26099c46ed984f72ed989304ccb63a94dca',
};

/** What of its config no page may show, beside the token. */
export const secrets = {
  upstreamKey: 'sk-secret-of-upstream',
  header: 'a-secret-that-no-page-shows',
  hashes: Object.values(hashes),
} as const;

/** A gateway whose operators look at it. */
export interface ConsoleGateway {
  readonly gateway: GatewayProcesses;
  readonly adminUrl: string;
  /** Asks the operators' listener, with the token. */
  admin(path: string, init?: RequestInit): Promise<Response>;
  /** Posts a JSON body to the gateway as a client does. @returns the status, once the answer is read */
  call(path: string, key: string, body: unknown): Promise<number>;
}

/**
 * A config with simulated models in every protocol that the console shows, some of them with prices, one upstream
 * that nobody listens for, and two keys of different groups.
 * @param unusedPort of the upstream that is down
 */
function consoleConfig(unusedPort: number): Record<string, unknown> {
  const at = (model: string) => [{ upstream: 'local', model }];
  return {
    admin: { port: 0, token: adminToken },
    // Beside the config file, which is gone with the gateway.
    store: { kind: 'embedded', path: 'data' },
    upstreams: {
      local: { kind: 'simulator' },
      down: {
        kind: 'chat',
        baseUrl: `http://127.0.0.1:${unusedPort}/v1`,
        apiKeys: [secrets.upstreamKey],
        headers: { 'x-secret': secrets.header },
      },
    },
    models: {
      talk: {
        protocols: textProtocols,
        targets: at('sim-text'),
        price: { input: 1.25, output: 10 },
      },
      vectors: { protocols: ['embeddings'], targets: at('sim-embedding'), price: { input: 0.02 } },
      pictures: {
        protocols: ['images', 'generateContent'],
        targets: at('sim-image'),
        price: { perCall: 0.04 },
      },
      voice: { protocols: ['audio'], targets: at('sim-speech') },
      films: { protocols: ['video'], targets: at('sim-video'), price: { perCall: 0.1 } },
      gone: { protocols: ['chat'], targets: [{ upstream: 'down', model: 'gone' }] },
    },
    groups: { default: { models: ['*'] }, trial: { models: ['talk'] } },
    keys: [
      { id: 'demo', hash: hashes.demo, groups: ['default'] },
      { id: 'trial', hash: hashes.trial, groups: ['trial'] },
    ],
  };
}

/** Starts a gateway with an operators' listener, a store and the simulator; it ends with the test. */
export async function startConsoleGateway(
  t: Test,
  options: { readonly workers?: number; readonly config?: Readonly<Record<string, unknown>> } = {},
): Promise<ConsoleGateway> {
  const gateway = await startGateway(t, {
    workers: options.workers ?? 1,
    file: { ...consoleConfig(await freePort()), ...options.config },
    env: { SIMULATOR_LATENCY_MS: '0' },
  });
  const adminUrl = await gateway.adminUrl();
  return {
    gateway,
    adminUrl,
    admin: (path, init) =>
      fetch(adminUrl + path, { headers: { authorization: `Bearer ${adminToken}` }, ...init }),
    async call(path, key, body) {
      const answer = await postJson(gateway.baseUrl + path, body, {
        authorization: `Bearer ${key}`,
        'anthropic-version': '2023-06-01',
      });
      await answer.arrayBuffer();
      return answer.status;
    },
  };
}
