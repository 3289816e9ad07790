import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, Work } from '../bench.js';
import { callerAt } from '../callers.js';
import type { Contender } from '../contenders/contender.js';
import { count, duration, percent } from '../figures.js';
import { readJson, startScript } from '../load/script.js';
import type { SessionsPlan, SessionsResult } from '../load/sessions-process.js';
import { type Shares, shares } from '../measure.js';
import { peakResidentMb, residentMb, workerOf } from '../proc.js';
import { startUpstream } from '../upstream-process.js';
import { disturbance } from '../verdict.js';
import { realtimePath } from './realtime.js';

const wanted = { idle: 2_000, busy: 200 };
const everyMs = 100;
const restSeconds = 3;

interface Outcome {
  readonly name: string;
  readonly result: SessionsResult;
  readonly shares: Shares;
  readonly beforeMb: number;
  readonly idleMb: number;
  readonly busyMb: number;
  readonly peakMb: number;
}

/** Measures the memory of many open sessions, of which few are busy. One run for each contender. */
export const realtimeSessionsWork: Work = {
  name: 'realtime-sessions',
  byDefault: false,
  async run(bench) {
    // A proxy has two sockets for each session, and a few other files.
    const possible = Math.floor((bench.machine.openFiles - 200) / 2);
    const idle = Math.min(wanted.idle, possible - wanted.busy);
    const notes: string[] = [];
    if (idle < wanted.idle) {
      notes.push(
        `SCALED DOWN from ${count(wanted.idle)} to ${count(idle)} idle sessions: ulimit -n is ${bench.machine.openFiles}.`,
      );
    }
    const outcomes: Outcome[] = [];
    for (const contender of bench.contenders) {
      if (contender.name === 'direct') continue;
      bench.progress(`realtime-sessions: ${contender.name}`);
      try {
        outcomes.push(await hold(bench, contender, idle));
      } catch (error) {
        notes.push(`${contender.name}: FAILED: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return report(idle, outcomes, notes);
  },
};

async function hold(bench: Bench, contender: Contender, idle: number): Promise<Outcome> {
  const { cores, directory, options } = bench;
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream });
  const setup = { upstreamPort: upstream.port, answer: 'realtime', directory, core: cores.contender };
  const running = await contender.start(setup);
  try {
    const worker = running.process ? workerOf(running.process.pid) : 0;
    const plan: SessionsPlan = {
      port: running.port,
      path: realtimePath(running),
      key: callerAt(0).key,
      idle,
      busy: wanted.busy,
      everyMs,
      restSeconds,
      seconds: options.seconds,
    };
    const client = await startScript('sessions-process.js', plan, cores.load);
    await readJson<null>(client);
    const beforeMb = residentMb(worker);
    await readJson<null>(client);
    await wait((restSeconds - 1) * 1000);
    const idleMb = residentMb(worker);
    await readJson<null>(client);
    await wait(1000);
    const parts = { contender: running.process, load: client, upstream: upstream.process };
    const measured = await shares(options.seconds, parts, cores);
    const busyMb = residentMb(worker);
    const result = await readJson<SessionsResult>(client);
    const peakMb = peakResidentMb(worker);
    return { name: contender.name, result, shares: measured, beforeMb, idleMb, busyMb, peakMb };
  } finally {
    await running.process?.stop();
    await upstream.process.stop();
  }
}

function report(idle: number, outcomes: readonly Outcome[], notes: readonly string[]) {
  const megabytes = (value: number): string => `${Math.round(value)} MB`;
  const kilobytes = (mb: number, sessions: number): string => `${((mb * 1024) / sessions).toFixed(1)} KB`;
  const { busy } = wanted;
  return {
    work: 'realtime-sessions',
    title: `${count(idle)} idle WebSocket sessions, then ${busy} beside them with a message of 1 KB every ${everyMs} ms`,
    columns: [
      'contender',
      'RSS before',
      'RSS idle',
      'KB a session',
      'RSS busy',
      'KB a session',
      'RSS peak',
      'messages/s',
      'p50',
      'p99',
      'CPU',
    ],
    rows: outcomes.map(({ name, result, shares: used, beforeMb, idleMb, busyMb, peakMb }) => [
      name,
      megabytes(beforeMb),
      megabytes(idleMb),
      kilobytes(idleMb - beforeMb, idle),
      megabytes(busyMb),
      kilobytes(busyMb - beforeMb, idle + busy),
      megabytes(peakMb),
      count(result.messagesPerSecond),
      duration(result.p50Us),
      duration(result.p99Us),
      percent(used.contender),
    ]),
    notes: [
      ...notes,
      ...outcomes.flatMap(({ name, result, shares: used }) => [
        ...(result.errors.length > 0 ? [`${name}: THE RUN HAD ERRORS: ${result.errors.join(', ')}.`] : []),
        ...disturbance(name, used),
      ]),
    ],
    figures: outcomes,
  };
}
