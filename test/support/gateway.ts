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

/** A gateway in the process of the test, with a config for tests. */
export interface GatewayOptions extends TestConfig {
  /** How long each message about limits is on its way. */
  readonly leaseDelayMs?: number;
  /** Keys beside those of the config. */
  readonly managedKeys?: ManagedKeySet | undefined;
  /** In which a video is kept or given up. */
  readonly keepVideoMs?: number | undefined;
  /** How long calls wait for the store of conversations. */
  readonly storeWait?: StoreWait | undefined;
}

/**
 * What the models of the demo are served by: the simulator, which takes every protocol as it comes, or an upstream of
 * one protocol, which is the simulator again, called in that protocol alone.
 */
export type ServedBy = Extract<UpstreamKind, 'simulator' | 'chat' | 'messages' | 'generateContent'>;

/** The gateway of `npm start` in the process of the test. */
export interface DemoOptions {
  readonly demo: ServedBy;
  /** Changes the config. */
  readonly adapt?: (config: ResolvedConfig) => ResolvedConfig;
}

/** A line of the log as its fields. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface RunningGateway {
  readonly gateway: Gateway;
  /** What it runs with. */
  readonly snapshot: Snapshot;
  /** The primary's side of its limits. */
  readonly owner: PoolOwner;
  readonly port: number;
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Every line that the gateway has logged; calls have `msg: 'request'`. */
  readonly lines: readonly LogLine[];
  /** Resolves with the first line, past or to come, for which `test` holds. */
  line(test: (line: LogLine) => boolean): Promise<LogLine>;
  /**
   * The lines of all calls that have ended, in the order of their ends, as soon as the one with this id is among
   * them.
   */
  linesUntil(id: string): Promise<readonly LogLine[]>;
}

export interface DemoGateway extends RunningGateway {
  /** The upstream of every model. */
  readonly simulator: Simulator;
  /** Unix seconds at which the models are said to have been created. */
  readonly created: number;
}

type Teardown = Pick<Test, 'teardown'>;

/** In place of a test, where whoever starts a gateway ends it. */
export const untilKilled: Teardown = { teardown: () => {} };

/**
 * Starts a gateway on a free port of 127.0.0.1; it ends with the test. It runs in this process, or in processes of its
 * own where the options say how many `workers` it has.
 * @returns when it listens
 */
export function startGateway(t: Teardown, options: ProcessOptions): Promise<GatewayProcesses>;
export function startGateway(t: Teardown, options: DemoOptions): Promise<DemoGateway>;
export function startGateway(t: Teardown, options: GatewayOptions): Promise<RunningGateway>;
export async function startGateway(
  t: Teardown,
  options: ProcessOptions | DemoOptions | GatewayOptions,
): Promise<GatewayProcesses | RunningGateway> {
  // Loaded where they are asked for: what only starts processes is not to load the gateway itself.
  if ('workers' in options) return (await import('./gateway-processes.js')).startProcesses(t, options);
  const { startDemoHere, startHere } = await import('./gateway-here.js');
  return 'demo' in options ? startDemoHere(t, options) : startHere(t, options);
}
