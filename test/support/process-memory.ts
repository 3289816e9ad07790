import { readFileSync } from 'node:fs';

const sampleMs = 100;

/** Resident memory of a process now, in MB (proc_pid_status(5)). */
export function residentMb(pid: number): number {
  return statusMb(pid, 'VmRSS');
}

/** The most memory that a process ever had resident, in MB. */
export function peakResidentMb(pid: number): number {
  return statusMb(pid, 'VmHWM');
}

function statusMb(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024;
}

interface MemoryWatch {
  /** What was seen, in MB, every 100 ms. */
  readonly samples: readonly number[];
  /** Ends the watch. */
  stop(): readonly number[];
}

/** Watches the resident memory of a process for as long as that runs. */
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

/** The middle one of some numbers; NaN of none. */
export function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5);
}

/** The number below which that part of all numbers lies; NaN of none. */
export function quantile(numbers: readonly number[], part: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
