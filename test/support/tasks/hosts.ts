import type { Test } from 'tap';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../../src/simulator/server.js';
import { type GatewayProcesses, startGateway } from '../gateway.js';
import { type PostgresServer, postgresFor } from '../postgres.js';
import { tasksGateway } from './gateway.js';

/** Longest wait for the store in these tests. */
export const storeTimeoutMs = 1000;

/** A PostgreSQL server, an upstream and a gateway, which end with the test. */
interface HostsStage {
  readonly postgres: PostgresServer;
  readonly simulator: Simulator;
  /** Starts a gateway with both. */
  start(): Promise<GatewayProcesses>;
}

export async function startHostsStage(
  t: Test,
  options: SimulatorOptions = {},
  timeoutMs = storeTimeoutMs,
): Promise<HostsStage> {
  const postgres = await postgresFor(t);
  const simulator = await startSimulator(options);
  t.teardown(() => simulator.close());
  return {
    postgres,
    simulator,
    async start() {
      const gateway = await startGateway(
        t,
        tasksGateway({
          upstreamUrl: simulator.url,
          store: { kind: 'postgres', url: postgres.url, timeoutMs },
        }),
      );
      t.teardown(() => gateway.end());
      return gateway;
    },
  };
}
