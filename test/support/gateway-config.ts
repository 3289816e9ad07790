import { hashKey } from '../../src/keys/secret.js';

export const testKey = 'sk-test';

/** `secret` of gateways that share a store, which requires one. */
export const sharedSecret = 'what-all-hosts-of-one-store-have-in-common';

/** The config of a gateway with the model `m`. */
export interface TestConfig {
  /** Base URLs of the model's targets, in order of priority. Default: none. */
  readonly upstreams?: readonly string[];
  /** Protocols of the model. Default: only chat. */
  readonly protocols?: readonly string[];
  /** Name of the model at the upstreams. Default: `m`. */
  readonly alias?: string;
  /** Merged into every target of the model. */
  readonly target?: Readonly<Record<string, unknown>> | undefined;
  /** Merged into every upstream. */
  readonly upstream?: Readonly<Record<string, unknown>> | undefined;
  /** Merged into the config. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Makes the config of a gateway with the model `m` and the key `testKey`. */
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
    // A store would be created in the current folder of whoever runs the tests.
    usage: { ledger: false },
    conversations: 'off',
    // Files that tests fetch are on any free port.
    fetch: { ports: ['1-65535'] },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'test', hash: hashKey(testKey), groups: ['default'] }],
    ...config,
  };
}
