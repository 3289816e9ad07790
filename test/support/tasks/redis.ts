import type { Test } from 'tap';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../../src/simulator/server.js';
import { type GatewayProcesses, startGateway } from '../gateway.js';
import { noRedis, type RedisServer, startRedis } from '../redis.js';
import { tasksGateway } from './gateway.js';

/** Longest wait for the store in these tests. */
export const storeTimeoutMs = 1000;

/** Why tests of video tasks in Redis cannot run, or false. */
export async function skipWithoutRedis(): Promise<string | false> {
  const probe = await startRedis();
  await probe?.stop();
  return probe === null && noRedis;
}

/** A Redis server, an upstream and a gateway, which end with the test. */
export interface RedisStage {
  readonly redis: RedisServer;
  readonly simulator: Simulator;
  /** Starts a gateway on both. */
  start(): Promise<GatewayProcesses>;
}

export async function startRedisStage(t: Test, options: SimulatorOptions = {}): Promise<RedisStage> {
  const redis = await startRedis({ keep: true });
  if (redis === null) throw new Error(noRedis);
  const simulator = await startSimulator(options);
  t.teardown(async () => {
    await simulator.close();
    await redis.stop();
  });
  return {
    redis,
    simulator,
    async start() {
      const gateway = await startGateway(
        t,
        tasksGateway({
          upstreamUrl: simulator.url,
          store: { kind: 'redis', url: redis.url, timeoutMs: storeTimeoutMs },
        }),
      );
      t.teardown(() => gateway.end());
      return gateway;
    },
  };
}
