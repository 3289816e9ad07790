import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What a process knows of itself at this moment. */
export interface ProcessGauges {
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Seconds by which timers came late since they were last asked for. */
  readonly loopDelay: { readonly p50: number; readonly p99: number; readonly max: number };
}

export interface ProcessWatch {
  /** Reads everything, and begins a new period of the event loop's delay. */
  read(): ProcessGauges;
  close(): void;
}

/** Milliseconds between two looks at the event loop. */
const resolutionMs = 20;
const nanosPerSecond = 1e9;

/** Watches this process until it is closed. It does not keep the process alive. */
export function watchProcess(): ProcessWatch {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  // What is recorded is the time from one look to the next.
  const late = (nanos: number): number => Math.max(0, nanos / nanosPerSecond - resolutionMs / 1000);
  return {
    read() {
      const { rss, heapUsed } = process.memoryUsage();
      const loopDelay = {
        p50: late(delay.percentile(50)),
        p99: late(delay.percentile(99)),
        max: late(delay.max),
      };
      delay.reset();
      return { residentBytes: rss, heapBytes: heapUsed, loopDelay };
    },
    close: () => {
      delay.disable();
    },
  };
}
