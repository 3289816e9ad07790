import { request } from 'node:http';
import type { Test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { sharedSecret } from '../support/gateway-config.js';
import { parseEntry } from '../support/gateway-processes.js';
import { startHttpUpstream } from '../support/upstream.js';

const token = 'the-token-of-the-operators';

/** The key of the config file in these tests. */
export const configKey = 'sk-of-the-config';

export interface KeysGateway {
  readonly gateway: GatewayProcesses;
  /** Asks the operators' listener. */
  operate(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> }>;
  /** Calls the gateway on a connection of its own, and so any of its workers. @returns the status */
  call(key: string): Promise<number>;
  /** Calls a model on a connection of its own, which counts for limits. @returns the status */
  chat(key: string): Promise<number>;
  /** The same several times at once. @returns each status that came */
  calls(key: string, times: number): Promise<ReadonlySet<number>>;
  /** Calls until each of the workers that serve now has answered; every answer must have the status. */
  callEveryWorker(t: Test, key: string, id: string): Promise<void>;
}

/** Starts a gateway whose operators may make keys. It ends with the test. */
export async function startKeysGateway(
  t: Test,
  options: { readonly store: object; readonly workers: number },
): Promise<KeysGateway> {
  const upstreamUrl = await startUpstream(t);
  const gateway = await startGateway(t, {
    workers: options.workers,
    file: {
      admin: { port: 0, token },
      store: options.store,
      secret: sharedSecret,
      upstreams: { main: { kind: 'chat', baseUrl: upstreamUrl } },
      models: { m: { protocols: ['chat'], targets: [{ upstream: 'main' }] } },
      groups: { default: { models: ['*'] } },
      keys: [{ id: 'fixed', hash: hashKey(configKey), groups: ['default'] }],
    },
  });
  const url = await gateway.adminUrl();

  const ask = (path: string, key: string, body: string | null): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const method = body === null ? 'GET' : 'POST';
      request(`${gateway.baseUrl}${path}`, { method, headers, agent: false }, (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode ?? 0));
      })
        .once('error', reject)
        .end(body ?? undefined);
    });
  const call = (key: string): Promise<number> => ask('/v1/models', key, null);
  const calls = async (key: string, times: number): Promise<ReadonlySet<number>> =>
    new Set(await Promise.all(Array.from({ length: times }, () => call(key))));

  return {
    gateway,
    async operate(method, path, body) {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    },
    call,
    chat: (key) => ask('/v1/chat/completions', key, chatBody),
    calls,
    async callEveryWorker(t, key, id) {
      const missing = new Set(gateway.workerPids());
      while (missing.size > 0) {
        t.strictSame([...(await calls(key, 10))], [200]);
        for (const line of gateway.logs) {
          const entry = parseEntry(line);
          if (entry?.msg === 'request' && entry.key === id) missing.delete(Number(entry.pid));
        }
      }
    },
  };
}

const chatBody = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });

/** An upstream that gives the same short answer to every call. @returns its base URL */
async function startUpstream(t: Test): Promise<string> {
  const { origin } = await startHttpUpstream(t, (asked, answer) => {
    asked.resume().once('end', () => {
      answer
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"object":"chat.completion","choices":[]}');
    });
  });
  return `${origin}/v1`;
}
