import { readFileSync } from 'node:fs';

const sampleMs = 100;

/** Returns the resident memory of a process, in MB (proc_pid_status(5)). */
export function residentMb(pid: number): number {
  return statusMb(pid, 'VmRSS');
}

/** Returns the peak resident memory of a process, in MB. */
export function peakResidentMb(pid: number): number {
  return statusMb(pid, 'VmHWM');
}

function statusMb(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024;
}

interface MemoryWatch {
  /** Samples in MB, every 100 ms. */
  readonly samples: readonly number[];
  /** Ends the watch. */
  stop(): readonly number[];
}

/** Samples the resident memory of a process as long as it runs. */
export function watchMemory(pid: number): MemoryWatch {
  const samples = [residentMb(pid)];
  const timer = setInterval(() => {
    try {
      samples.push(residentMb(pid));
    } catch {
      clearInterval(timer);
    }
  }, sampleMs);
  return {
    samples,
    stop() {
      clearInterval(timer);
      return samples;
    },
  };
}

/** Returns the median; NaN for no numbers. */
export function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5);
}

/** Returns the quantile; NaN for no numbers. */
export function quantile(numbers: readonly number[], part: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
