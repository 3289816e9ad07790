import type { Test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import type { Snapshot, UpstreamKind } from '../../src/config/types.js';
import type { StoreWait } from '../../src/flow/services.js';
import type { Gateway } from '../../src/gateway.js';
import type { ManagedKeySet } from '../../src/keys/key-set.js';
import type { PoolOwner } from '../../src/limits/pool-owner.js';
import type { Simulator } from '../../src/simulator/server.js';
import type { TestConfig } from './gateway-config.js';
import type { GatewayProcesses, ProcessOptions } from './gateway-processes.js';

export { testConfig, testKey } from './gateway-config.js';
export type { GatewayProcesses, ProcessOptions } from './gateway-processes.js';

/** A gateway in the process of the test, with a test config. */
export interface GatewayOptions extends TestConfig {
  /** Delay of each message about limits, in milliseconds. */
  readonly leaseDelayMs?: number;
  /** Keys in addition to those of the config. */
  readonly managedKeys?: ManagedKeySet | undefined;
  /** Time limit for keeping a video. */
  readonly keepVideoMs?: number | undefined;
  /** How long calls wait for the store of conversations. */
  readonly storeWait?: StoreWait | undefined;
}

/**
 * What serves the models of the demo: the simulator with all of its protocols, or an upstream of one protocol, which
 * is the simulator as well, but is called only in that protocol.
 */
export type ServedBy = Extract<UpstreamKind, 'simulator' | 'chat' | 'messages' | 'generateContent'>;

/** The gateway of `npm start` in the process of the test. */
export interface DemoOptions {
  readonly demo: ServedBy;
  /** Changes the config. */
  readonly adapt?: (config: ResolvedConfig) => ResolvedConfig;
}

/** The fields of a log line. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface RunningGateway {
  readonly gateway: Gateway;
  /** The config that it runs with. */
  readonly snapshot: Snapshot;
  /** The primary's side of its limits. */
  readonly owner: PoolOwner;
  readonly port: number;
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Every line that the gateway has logged; those of calls have `msg: 'request'`. */
  readonly lines: readonly LogLine[];
  /** Resolves with the first line, past or future, for which `test` holds. */
  line(test: (line: LogLine) => boolean): Promise<LogLine>;
  /**
   * Resolves with the lines of all ended calls, in the order of their ends, once the call with this id is among
   * them.
   */
  linesUntil(id: string): Promise<readonly LogLine[]>;
}

export interface DemoGateway extends RunningGateway {
  /** The upstream of every model. */
  readonly simulator: Simulator;
  /** Creation time of the models, in Unix seconds. */
  readonly created: number;
}

type Teardown = Pick<Test, 'teardown'>;

/** Replaces a test if the caller ends the gateway. */
export const untilKilled: Teardown = { teardown: () => {} };

/**
 * Starts a gateway on a free port of 127.0.0.1, which ends with the test. It runs in this process, or in separate
 * processes if the options set `workers`.
 * @returns when it listens
 */
export function startGateway(t: Teardown, options: ProcessOptions): Promise<GatewayProcesses>;
export function startGateway(t: Teardown, options: DemoOptions): Promise<DemoGateway>;
export function startGateway(t: Teardown, options: GatewayOptions): Promise<RunningGateway>;
export async function startGateway(
  t: Teardown,
  options: ProcessOptions | DemoOptions | GatewayOptions,
): Promise<GatewayProcesses | RunningGateway> {
  // Loaded on demand: a test that only starts processes must not load the gateway itself.
  if ('workers' in options) return (await import('./gateway-processes.js')).startProcesses(t, options);
  const { startDemoHere, startHere } = await import('./gateway-here.js');
  return 'demo' in options ? startDemoHere(t, options) : startHere(t, options);
}
