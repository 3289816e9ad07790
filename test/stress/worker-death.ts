import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { runningUs, waitedUs } from '../../bench/proc.js';
import { eventually } from '../support/eventually.js';
import { openConnection } from '../support/load/connection.js';
import { type LoadFailure, startLoad } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { clock } from '../support/load/upstream.js';
import { median } from '../support/process-memory.js';
import { onStage, type Stage } from './stage.js';

interface WorkerDeathPlan {
  readonly connections: number;
  /** Duration of the load before the kill, and again once the new worker serves. */
  readonly seconds: number;
}

interface WorkerDeathFigures {
  /** Connections to the worker when it was killed. */
  readonly onVictim: number;
  readonly failures: readonly LoadFailure[];
  /** Those of them to the killed worker, and to the surviving one. */
  readonly failuresOnVictim: number;
  readonly failuresOnSurvivor: number;
  /**
   * Those of them that were first requests on new connections. A killed process closes its listening socket only
   * after some of its connections, so that their clients may reconnect into its queue and be reset.
   */
  readonly failuresOnNew: number;
  /** Those of them after the new worker had answered for the first time. */
  readonly failuresAfterwards: number;
  /** From the kill to the last failure; 0 without one. */
  readonly lastFailureMs: number;
  /** From the kill to the first answer of the new worker. */
  readonly restoredMs: number;
  /** Time that the threads of the new worker ran until then: the rest is other processes' use of the cores. */
  readonly restoredCpuMs: number;
  /** Time that its main thread was ready to run until then, while others had the cores. */
  readonly waitedMs: number;
  /** Time that an idle Node process takes to start in the same minute, to show the present speed of a core. */
  readonly bareCpuMs: number;
  readonly answers: number;
}

const requests = [
  loadRequest({ does: 'complete', afterMs: 5 }),
  loadRequest({ does: 'stream', events: 10, everyMs: 10 }),
];
const probe = loadRequest({ does: 'complete' });
const probeEveryMs = 5;
const bareStarts = 7;

/** Two workers under load, one of which is killed by SIGKILL. */
export function workerDeath(plan: WorkerDeathPlan): Promise<WorkerDeathFigures> {
  return onStage({ workers: 2 }, async (stage) => {
    const load = startLoad({ port: stage.gateway.port, connections: plan.connections, requests });
    await pause(plan.seconds * 1000);
    const workersBefore = new Set([...(await seenWorkers(stage)), ...load.lastAnswerOf.keys()]);
    const workerOf = load.workers();
    const pidsBefore = new Set(stage.gateway.workerPids());
    const killedAt = clock();
    process.kill(stage.worker, 'SIGKILL');
    await firstAnswer(stage, (worker) => !workersBefore.has(worker));
    const restoredMs = clock() - killedAt;
    const restoredPid = stage.gateway.workerPids().find((pid) => !pidsBefore.has(pid));
    const restoredCpuMs = restoredPid === undefined ? Number.NaN : runningUs(restoredPid) / 1000;
    const waitedMs = restoredPid === undefined ? Number.NaN : waitedUs(restoredPid) / 1000;
    const before = load.failures.length;
    const bareCpuMs = await bareStart();
    await pause(plan.seconds * 1000);
    await load.stop();
    const victim = [...workersBefore].sort(
      (a, b) => (load.lastAnswerOf.get(a) ?? 0) - (load.lastAnswerOf.get(b) ?? 0),
    )[0];
    const { failures } = load;
    const failuresOf = (fits: (worker: string | null) => boolean): number =>
      failures.filter((failure) => fits(failure.worker)).length;
    return {
      onVictim: workerOf.filter((worker) => worker === victim).length,
      failures,
      failuresOnVictim: failuresOf((worker) => worker === victim),
      failuresOnSurvivor: failuresOf((worker) => worker !== victim && worker !== null),
      failuresOnNew: failuresOf((worker) => worker === null),
      failuresAfterwards: failures.length - before,
      lastFailureMs: Math.max(0, ...failures.map(({ at }) => at - killedAt)),
      restoredMs,
      restoredCpuMs,
      waitedMs,
      bareCpuMs,
      answers: load.answers,
    };
  });
}

/** Median of a few successive starts. */
async function bareStart(): Promise<number> {
  const told = 'const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)';
  const starts: number[] = [];
  for (let start = 0; start < bareStarts; start += 1) {
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', told]);
    starts.push(Number(stdout));
  }
  return median(starts);
}

/** Opens connections until both workers have answered on one. */
async function seenWorkers(stage: Stage): Promise<Set<string>> {
  const seen = new Set<string>();
  await firstAnswer(stage, (worker) => seen.add(worker).size === 2);
  return seen;
}

/** Sends requests on new connections, one after the other, until the answering worker matches. */
async function firstAnswer(stage: Stage, fits: (worker: string) => boolean): Promise<void> {
  const ask = async (): Promise<boolean> => {
    try {
      const connection = await openConnection(stage.gateway.port);
      const { worker } = await connection.ask(probe);
      connection.close();
      return fits(worker);
    } catch {
      // The dying worker had accepted the connection.
      return false;
    }
  };
  await eventually(ask, { what: 'an answer of the wanted worker', everyMs: probeEveryMs });
}
