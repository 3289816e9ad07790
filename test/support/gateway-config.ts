import { hashKey } from '../../src/keys/secret.js';

export const testKey = 'sk-test';

/** `secret` of gateways that share a store, as they have to. */
export const sharedSecret = 'what-all-hosts-of-one-store-have-in-common';

/** What a gateway with the model `m` is configured with. */
export interface TestConfig {
  /** Base URLs of the model's targets, in order of priority; none unless given. */
  readonly upstreams?: readonly string[];
  /** Protocols of the model; chat alone unless given. */
  readonly protocols?: readonly string[];
  /** Name of the model at the upstreams; `m` unless given. */
  readonly alias?: string;
  /** Merged over every target of the model. */
  readonly target?: Readonly<Record<string, unknown>> | undefined;
  /** Merged over every upstream. */
  readonly upstream?: Readonly<Record<string, unknown>> | undefined;
  /** Merged over the config. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** The config of a gateway with the model `m` and the key `testKey`. */
export function testConfig(options: TestConfig): Record<string, unknown> {
  const { upstreams = [], protocols = ['chat'], alias = 'm', target, upstream, config } = options;
  const names = upstreams.map((_, index) => `u${index}`);
  return {
    listen: { host: '127.0.0.1', port: 0 },
    upstreams: Object.fromEntries(
      upstreams.map((baseUrl, index) => [
        names[index],
        { kind: 'chat', baseUrl, apiKeys: ['upstream-key'], ...upstream },
      ]),
    ),
    models: {
      m: {
        protocols,
        targets: names.map((name, priority) => ({ upstream: name, model: alias, priority, ...target })),
      },
    },
    // A store would be made in the folder of whoever runs the tests.
    usage: { ledger: false },
    conversations: 'off',
    // What tests have fetched is on any free port.
    fetch: { ports: ['1-65535'] },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'test', hash: hashKey(testKey), groups: ['default'] }],
    ...config,
  };
}
