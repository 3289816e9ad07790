import { openSync, readSync, writeSync } from 'node:fs';
import { type PerformanceEntry, PerformanceObserver, performance } from 'node:perf_hooks';

/*
 * Loaded into the processes of a gateway before their own code. Writes each turn of the event loop that took long as
 * a line of JSON to the file that this variable names.
 */
const file = process.env.BENCH_PAUSES;
/** Shorter turns are not written. */
const leastMs = 0.3;

/** The record of a turn. */
export interface NotedTurn {
  readonly pid: number;
  readonly role: 'primary' | 'worker';
  /** Whether the process serves. A worker that does not serve yet delays nobody. */
  readonly serves: boolean;
  /** End of the turn, in Unix milliseconds. */
  readonly at: number;
  /** CPU time of the thread, including garbage collection. */
  readonly cpuMs: number;
  /** Time of garbage collection in it. */
  readonly gcMs: number;
  /** Times of the periodic functions that ran in it, by the function that registered them. */
  readonly intervalMs: Readonly<Record<string, number>>;
}

function roleOf(module = ''): NotedTurn['role'] | null {
  if (module.endsWith('src/main.js')) return 'primary';
  return module.endsWith('src/worker.js') ? 'worker' : null;
}

/** Records that a worker listens from now on. */
function watchServing(onServing: () => void): void {
  const send = process.send?.bind(process);
  if (send === undefined) return;
  const watched: typeof send = (message: unknown, ...others: never[]) => {
    if (typeof message === 'object' && message !== null && Reflect.get(message, 'type') === 'listening')
      onServing();
    return send(message, ...others);
  };
  process.send = watched;
}

/** Of the current turn. */
let intervalMs: Record<string, number> = {};

/** Measures the functions that are registered as periodic from now on. */
function watchIntervals(): void {
  const { setInterval: every } = globalThis;
  const timed = (call: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => {
    const name = callerName(new Error().stack ?? '');
    const timedCall = (...given: unknown[]): void => {
      const from = performance.now();
      try {
        call(...given);
      } finally {
        intervalMs[name] = (intervalMs[name] ?? 0) + performance.now() - from;
      }
    };
    return every(timedCall, ms, ...args);
  };
  Object.assign(globalThis, { setInterval: timed });
}

/**
 * Returns the function in the third line of a stack, after those of the error and of `timed`, with its place: `start,
 * worker.js:12`.
 */
function callerName(stack: string): string {
  const [, , line = ''] = stack.split('\n');
  const [, name, place = ''] = /at (?:(.+) \()?.*\/(.+:\d+):\d+/.exec(line) ?? [];
  return name === undefined ? place : `${name}, ${place}`;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

function watch(role: NotedTurn['role'], output: number): void {
  // Opened by the main thread, so it is that thread's: nanoseconds on a processor
  // (Documentation/scheduler/sched-stats.rst).
  const schedstat = openSync('/proc/thread-self/schedstat', 'r');
  const buffer = Buffer.alloc(64);
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let serves = role === 'primary';
  watchServing(() => {
    serves = true;
  });
  /** Collections that were reported and belong to no recorded turn yet: reports arrive up to a turn late. */
  let collections: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => void collections.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  const note = ({ from, to, ...turn }: Omit<NotedTurn, 'pid' | 'role' | 'at' | 'gcMs'> & Span): void => {
    collections.push(...observer.takeRecords());
    let gcMs = 0;
    for (const { startTime, duration } of collections)
      if (startTime >= from && startTime < to) gcMs += duration;
    collections = collections.filter(({ startTime }) => startTime >= to);
    const at = performance.timeOrigin + to;
    const noted: NotedTurn = { pid: process.pid, role, at, gcMs, ...turn };
    writeSync(output, `${JSON.stringify(noted)}\n`);
  };
  let last: Parameters<typeof note>[0] | null = null;
  const threadMs = (): number => {
    // The kernel adds to a thread's time when the thread leaves the processor.
    Atomics.wait(cell, 0, 0, 0.05);
    const read = readSync(schedstat, buffer, 0, buffer.length, 0);
    return Number(buffer.toString('latin1', 0, read).split(' ')[0]) / 1e6;
  };
  watchIntervals();
  let before = threadMs();
  let from = performance.now();
  let served = serves;
  const look = (): void => {
    const now = threadMs();
    const cpuMs = now - before;
    if (last !== null) note(last);
    last = cpuMs < leastMs ? null : { serves: served, cpuMs, intervalMs, from, to: performance.now() };
    served = serves;
    intervalMs = {};
    before = threadMs();
    from = performance.now();
    setImmediate(look).unref();
  };
  setImmediate(look).unref();
}

const role = roleOf(process.argv[1]);
if (file !== undefined && role !== null) watch(role, openSync(file, 'a'));
