import { pino } from 'pino';
import type { Test } from 'tap';
import { demoConfig } from '../../src/config/demo.js';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { buildSnapshot } from '../../src/config/snapshot.js';
import { createGateway, type Gateway } from '../../src/gateway.js';
import { type Simulator, startSimulator } from '../../src/simulator/server.js';
import { ownLimits } from './leases.js';

/** A line of the gateway's log. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface DemoGateway {
  readonly gateway: Gateway;
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** The upstream of every model. */
  readonly simulator: Simulator;
  /** Unix seconds at which the models are said to have been created. */
  readonly created: number;
  /**
   * The lines of all calls that have ended, in the order of their ends, as soon as the one with this id is among
   * them.
   */
  linesUntil(id: string): Promise<readonly LogLine[]>;
}

/** A store would be made in the folder of whoever runs the tests. */
function withoutLedger(config: ResolvedConfig): ResolvedConfig {
  return { ...config, usage: { ...config.usage, ledger: false } };
}

/**
 * Starts the gateway of `npm start` in this process, with a simulator of its own; both end with the test.
 * @param adapt changes the demo's config.
 */
export async function startDemo(
  t: Test,
  adapt: (config: ResolvedConfig) => ResolvedConfig = (config) => config,
): Promise<DemoGateway> {
  const created = 1_700_000_000;
  const simulator = await startSimulator();
  const calls: LogLine[] = [];
  const waiting = new Set<() => void>();
  const write = (text: string): void => {
    const line = JSON.parse(text) as LogLine;
    if (line.msg !== 'request') return;
    calls.push(line);
    for (const look of waiting) look();
  };
  const config = adapt(withoutLedger(demoConfig(created)));
  const snapshot = buildSnapshot(config, { simulatorUrl: `http://127.0.0.1:${simulator.port}` });
  const log = pino({ base: null }, { write });
  const gateway = ownLimits(t, config).join((sendLease) => createGateway({ snapshot, log, sendLease }));
  const port = await gateway.listen('127.0.0.1', 0);
  t.teardown(async () => {
    await gateway.close();
    await simulator.close();
  });
  return {
    gateway,
    url: `http://127.0.0.1:${port}`,
    simulator,
    created,
    linesUntil: (id) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!calls.some((line) => line.id === id)) return;
          waiting.delete(look);
          resolve([...calls]);
        };
        waiting.add(look);
        look();
      }),
  };
}
