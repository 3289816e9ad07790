import { openSync, readSync, writeSync } from 'node:fs';
import { PerformanceObserver, performance } from 'node:perf_hooks';

/*
 * Loaded into the processes of a gateway before their own code: notes each turn of the event loop that took its thread long,
 * as a line of JSON in the file of this variable.
 */
const file = process.env.BENCH_PAUSES;
/** Shorter turns are not noted. */
const leastMs = 0.3;

/** What is noted of a turn. */
export interface NotedTurn {
  readonly pid: number;
  readonly role: 'primary' | 'worker';
  /** When it ended, in Unix milliseconds. */
  readonly at: number;
  /** CPU time of the thread, its garbage collections included. */
  readonly cpuMs: number;
  /** The garbage collections in it. */
  readonly gcMs: number;
}

function roleOf(module = ''): NotedTurn['role'] | null {
  if (module.endsWith('src/main.js')) return 'primary';
  return module.endsWith('src/worker.js') ? 'worker' : null;
}

function watch(role: NotedTurn['role'], output: number): void {
  // Opened by the main thread, whose time it tells: nanoseconds on a processor (Documentation/scheduler/sched-stats.rst).
  const schedstat = openSync('/proc/thread-self/schedstat', 'r');
  const buffer = Buffer.alloc(64);
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let gcMs = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) gcMs += duration;
  });
  observer.observe({ entryTypes: ['gc'] });
  const threadMs = (): number => {
    // The kernel adds a thread's time up when it leaves the processor.
    Atomics.wait(cell, 0, 0, 0.05);
    const read = readSync(schedstat, buffer, 0, buffer.length, 0);
    return Number(buffer.toString('latin1', 0, read).split(' ')[0]) / 1e6;
  };
  let before = threadMs();
  const look = (): void => {
    const now = threadMs();
    const cpuMs = now - before;
    if (cpuMs >= leastMs) {
      for (const { duration } of observer.takeRecords()) gcMs += duration;
      const at = performance.timeOrigin + performance.now();
      writeSync(
        output,
        `${JSON.stringify({ pid: process.pid, role, at, cpuMs, gcMs } satisfies NotedTurn)}\n`,
      );
    }
    gcMs = 0;
    before = threadMs();
    setImmediate(look).unref();
  };
  setImmediate(look).unref();
}

const role = roleOf(process.argv[1]);
if (file !== undefined && role !== null) watch(role, openSync(file, 'a'));
