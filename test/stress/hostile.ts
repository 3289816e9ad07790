import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openConnection } from '../support/load/connection.js';
import { isWhole } from '../support/load/load.js';
import { loadKeyHash, loadRequest } from '../support/load/request.js';
import { quantile, residentMb, watchMemory } from '../support/process-memory.js';
import { random } from '../support/seed.js';
import { onStage, stageConfig } from './stage.js';

/** The attacker's key. */
export const hostileKey = 'sk-hostile';
const hostileKeyHash = 'sha256:012842b3d560409fa1cfb84693f16a3d3e5bda4cdba47a9c9678b49f2aaf7620';

/** An attack that continues until it is stopped. */
interface RunningAttack {
  /** Ends it. @returns a short description of what happened */
  stop(): Promise<string>;
}

/** Starts an attack with `hostileKey` on the gateway at a port. */
export type Attack = (port: number) => Promise<RunningAttack>;

/** The kind of attack. */
export type AttackPlan =
  /** Holds requests open whose bodies hardly arrive. */
  | { readonly kind: 'bodies' }
  /** Keeps sockets within messages that never end. */
  | { readonly kind: 'sockets'; readonly sockets: number; readonly within: 'one frame' | 'fragments' };

interface HostilePlan {
  readonly attack: AttackPlan;
  /** Clients of the other key, each with one call at a time. */
  readonly clients: number;
  /** Longest pause of a client between two calls, in milliseconds. */
  readonly pauseMs: number;
  /** Duration of the measurement before the attack. */
  readonly undisturbedSeconds: number;
  /** Duration of the attack. */
  readonly seconds: number;
  /** Members of the config in addition to the stage's. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** What the clients of the other key measured in one period. */
interface Stretch {
  readonly answers: number;
  /** Answers that were not whole with status 200. */
  readonly failures: readonly string[];
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface HostileFigures {
  readonly undisturbed: Stretch;
  readonly disturbed: Stretch;
  /** p99 under attack, relative to that without. */
  readonly ratio: number;
  readonly beforeMb: number;
  readonly highestMb: number;
  /** What happened to the attack. */
  readonly met: string;
}

/** Measures the calls of one key, first undisturbed, then while another key attacks the same worker. */
export function underAttack(plan: HostilePlan): Promise<HostileFigures> {
  return onStage({ config: (url) => ({ ...twoKeys(url), ...plan.config }) }, async ({ gateway, worker }) => {
    const { port } = gateway;
    await measure(port, plan, warmUpSeconds);
    const undisturbed = await measure(port, plan, plan.undisturbedSeconds);
    const beforeMb = residentMb(worker);
    const memory = watchMemory(worker);
    const attack = startAttacker(port, plan.attack);
    const disturbed = await measure(port, plan, plan.seconds);
    const met = await attack.stop();
    const highestMb = Math.max(...memory.stop());
    return { undisturbed, disturbed, ratio: disturbed.p99Ms / undisturbed.p99Ms, beforeMb, highestMb, met };
  });
}

const warmUpSeconds = 3;

/** An attacker is a separate process, so that its work does not delay the measured clients. */
function startAttacker(port: number, plan: AttackPlan): RunningAttack {
  const child = fork(join(import.meta.dirname, 'hostile-process.js'));
  child.send({ port, plan });
  return {
    async stop() {
      const met = once(child, 'message');
      child.send('stop');
      const [what] = (await met) as [string];
      return what;
    },
  };
}

function twoKeys(upstreamUrl: string): Readonly<Record<string, unknown>> {
  const config = stageConfig(upstreamUrl);
  return {
    ...config,
    keys: [
      { id: 'load', hash: loadKeyHash, groups: ['default'] },
      { id: 'hostile', hash: hostileKeyHash, groups: ['default'] },
    ],
  };
}

/** Half of the calls are small, half have a prompt of 60 KB. */
const requests = [
  loadRequest({ does: 'complete' }),
  loadRequest({ does: 'complete' }, { promptLength: 60_000 }),
];

async function measure(port: number, { clients, pauseMs }: HostilePlan, seconds: number): Promise<Stretch> {
  const until = performance.now() + seconds * 1000;
  const tookMs: number[] = [];
  const failures: string[] = [];
  const client = async (number: number): Promise<void> => {
    let connection = await openConnection(port);
    for (let turn = number; performance.now() < until; turn++) {
      const startedAt = performance.now();
      try {
        if (!connection.usable) connection = await openConnection(port);
        const answer = await connection.ask(requests[turn % requests.length] as Buffer);
        tookMs.push(performance.now() - startedAt);
        if (!isWhole(answer)) failures.push(`status ${answer.status} ${answer.text.slice(0, 200)}`);
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error));
      }
      await pause(random() * pauseMs);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  return {
    answers: tookMs.length,
    failures,
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
  };
}
