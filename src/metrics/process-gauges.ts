import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

/**
 * What a process knows of itself at this moment. By hand, since prom-client's gauges are of the process that is asked,
 * with all its event loop's delay since the start or since whoever asked before: these are told to the primary and added.
 */
export interface ProcessGauges {
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Seconds by which timers came late, in the last half minute at least and one at most. */
  readonly loopDelay: { readonly p50: number; readonly p99: number; readonly max: number };
}

/** Milliseconds between two looks at the event loop. */
const resolutionMs = 20;
const nanosPerSecond = 1e9;
/** A period of the event loop's delay is read this long while the next one is under way. */
const periodMs = 30_000;

/** Resident memory of this process, in bytes; null where it has no descriptor left to ask the system with. */
export function residentMemory(): number | null {
  try {
    return process.memoryUsage.rss();
  } catch {
    return null;
  }
}

/** Watches this process until it is closed. It does not keep the process alive. */
export function watchProcess() {
  let current = monitorEventLoopDelay({ resolution: resolutionMs });
  let next = monitorEventLoopDelay({ resolution: resolutionMs });
  current.enable();
  next.enable();
  let turnedAt = performance.now();
  let residentBytes = 0;
  // What is recorded is the time from one look to the next.
  const late = (nanos: number): number => Math.max(0, nanos / nanosPerSecond - resolutionMs / 1000);
  return {
    /**
     * Reads everything. Whoever asks takes nothing from others who ask.
     * @param now milliseconds of `performance.now()`
     */
    read(now = performance.now()): ProcessGauges {
      if (now - turnedAt >= periodMs) {
        current.reset();
        [current, next] = [next, current];
        turnedAt = now;
      }
      residentBytes = residentMemory() ?? residentBytes;
      const loopDelay = {
        p50: late(current.percentile(50)),
        p99: late(current.percentile(99)),
        max: late(current.max),
      };
      return { residentBytes, heapBytes: getHeapStatistics().used_heap_size, loopDelay };
    },
    close(): void {
      current.disable();
      next.disable();
    },
  };
}
