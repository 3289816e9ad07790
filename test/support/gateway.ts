import { pino } from 'pino';
import type { Test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { buildSnapshot } from '../../src/config/snapshot.js';
import type { Snapshot } from '../../src/config/types.js';
import { createGateway, type Gateway } from '../../src/gateway.js';
import type { ManagedKeySet } from '../../src/keys/key-set.js';
import { hashKey } from '../../src/keys/secret.js';
import type { LeaseOwner } from '../../src/limits/lease-owner.js';
import { ownLimits } from './leases.js';

export const testKey = 'sk-test';

export interface RunningGateway {
  readonly gateway: Gateway;
  /** What it runs with. */
  readonly snapshot: Snapshot;
  /** The primary's side of its limits. */
  readonly owner: LeaseOwner;
  readonly port: number;
  readonly url: string;
  /** Every line that the gateway has logged, parsed; requests have `msg: 'request'`. */
  readonly lines: readonly Record<string, unknown>[];
  /** Resolves with the log line of the first call for which `test` holds. */
  line(test: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
}

export interface GatewayOptions {
  /** Base URL of one upstream that serves the model `m`, or one for each of its targets in order of priority. */
  readonly upstreams: readonly string[];
  /** Name of the model at the upstreams; `m` unless given. */
  readonly alias?: string;
  /** Merged over the config. */
  readonly config?: Record<string, unknown>;
  /** How long each message about limits is on its way. */
  readonly leaseDelayMs?: number;
  /** Merged over every upstream of the config. */
  readonly upstream?: Record<string, unknown>;
  /** Keys beside those of the config. */
  readonly managedKeys?: ManagedKeySet;
}

/** The config of a gateway with the model `m` in the chat protocol and the key `testKey`. */
export function testConfig(options: GatewayOptions): Record<string, unknown> {
  const names = options.upstreams.map((_, index) => `u${index}`);
  return {
    listen: { host: '127.0.0.1', port: 0 },
    upstreams: Object.fromEntries(
      options.upstreams.map((baseUrl, index) => [
        names[index],
        { kind: 'chat', baseUrl, apiKeys: ['upstream-key'], ...options.upstream },
      ]),
    ),
    models: {
      m: {
        protocols: ['chat'],
        targets: names.map((upstream, priority) => ({ upstream, model: options.alias ?? 'm', priority })),
      },
    },
    // A store would be made in the folder of whoever runs the tests.
    usage: { ledger: false },
    // What tests have fetched is on any free port.
    fetch: { ports: ['1-65535'] },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'test', hash: hashKey(testKey), groups: ['default'] }],
    ...options.config,
  };
}

/** Starts a gateway in this process on a free port; it ends with the test. */
export async function startGateway(
  t: Pick<Test, 'teardown'>,
  options: GatewayOptions,
): Promise<RunningGateway> {
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  const log = pino(
    { base: null },
    {
      write: (text: string) => {
        lines.push(JSON.parse(text) as Record<string, unknown>);
        for (const look of waiting) look();
      },
    },
  );
  const config = parseConfig(JSON.stringify(testConfig(options)), {
    directory: '.',
    environment: {},
    created: 1,
  });
  const snapshot = buildSnapshot(config, { simulatorUrl: null });
  const { managedKeys } = options;
  const { owner, join } = ownLimits(t, config, options.leaseDelayMs);
  const gateway = join((sendLease) =>
    createGateway({ snapshot, log, sendLease, ...(managedKeys === undefined ? {} : { managedKeys }) }),
  );
  const port = await gateway.listen('127.0.0.1', 0);
  t.teardown(() => gateway.close());
  return {
    gateway,
    snapshot,
    owner,
    port,
    url: `http://127.0.0.1:${port}`,
    lines,
    line: (test) =>
      new Promise((resolve) => {
        const look = () => {
          const found = lines.find(test);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}
