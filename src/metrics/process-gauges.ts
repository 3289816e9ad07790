import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

/**
 * The current state of a process. Not by prom-client, whose gauges are those of the process that serves the request, with
 * the event loop delay since the start or the previous read. These are sent to the primary and combined there.
 */
export interface ProcessGauges {
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Delay of timers in seconds, over at least the last half minute and at most the last minute. */
  readonly loopDelay: { readonly p50: number; readonly p99: number; readonly max: number };
}

/** Milliseconds between two samples of the event loop delay. */
const resolutionMs = 20;
const nanosPerSecond = 1e9;
/** Length of a period of the event loop delay; each period is read while the next one is recorded. */
const periodMs = 30_000;

/** Resident memory of this process in bytes; null if no file descriptor is free to read it. */
export function residentMemory(): number | null {
  try {
    return process.memoryUsage.rss();
  } catch {
    return null;
  }
}

/** Starts measuring this process, until closed. Does not keep the process alive. */
export function watchProcess() {
  let current = monitorEventLoopDelay({ resolution: resolutionMs });
  let next = monitorEventLoopDelay({ resolution: resolutionMs });
  current.enable();
  next.enable();
  let turnedAt = performance.now();
  let residentBytes = 0;
  // The recorded value is the time between two samples.
  const late = (nanos: number): number => Math.max(0, nanos / nanosPerSecond - resolutionMs / 1000);
  return {
    /**
     * Reads everything. Concurrent readers do not affect each other.
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
