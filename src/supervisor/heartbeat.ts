import { statOf } from '../store/process-mark.js';

/** Interval of a worker's heartbeats, and of the checks for missing ones. */
export const heartbeatMs = 1000;
/**
 * A worker silent for more than this many checks in a row hangs. No work of the gateway blocks an event loop for that
 * long.
 */
const mostMissed = 10;
/** Most of the silent checks that are excused because the kernel works for the process meanwhile. */
const mostBusy = 20;
/** Kernel time between two checks that an endless loop in JavaScript does not reach. */
const busyMs = 30;
/** Duration of a tick in `/proc/PID/stat`. */
const clockTickMs = 10;
/** Index of field 15 in an array that begins with field 3. */
const kernelTicks = 12;

/** Silence of one process since its last heartbeat. */
interface Silence {
  looks: number;
  busyLooks: number;
  /** Kernel time at the last check. Null if unknown. */
  kernelMs: number | null;
}

/**
 * Watches processes that send a heartbeat every `heartbeatMs` while their event loop turns. Checks are counted, not
 * time: after a moment in which the whole host stood still, no process has missed more than one. A worker whose sockets
 * all have much to read sends no heartbeat before it has read everything, but it does serve. An endless loop needs
 * almost no kernel time.
 * @param onSilent called once for a process that has been silent for too long, which is then no longer watched
 * @param kernelMsOf kernel time of a process, or null if the system does not report it
 */
export function watchHeartbeats<Process>(
  onSilent: (process: Process) => void,
  kernelMsOf: (process: Process) => number | null,
) {
  const silences = new Map<Process, Silence>();

  const isBusy = (process: Process, silence: Silence): boolean => {
    const before = silence.kernelMs;
    silence.kernelMs = kernelMsOf(process);
    return before !== null && silence.kernelMs !== null && silence.kernelMs - before >= busyMs;
  };

  return {
    /** Records a heartbeat. A process is watched from its first one. */
    beat(process: Process): void {
      const silence = silences.get(process);
      if (silence === undefined) silences.set(process, { looks: 0, busyLooks: 0, kernelMs: null });
      else {
        silence.looks = 0;
        silence.busyLooks = 0;
        silence.kernelMs = null;
      }
    },
    /** Stops watching a process that has ended. */
    forget(process: Process): void {
      silences.delete(process);
    },
    /** Counts every process that was silent since the last check. Call it every `heartbeatMs`. */
    look(): void {
      for (const [process, silence] of silences) {
        if (isBusy(process, silence) && silence.busyLooks < mostBusy) silence.busyLooks++;
        else silence.looks++;
        if (silence.looks <= mostMissed) continue;
        silences.delete(process);
        onSilent(process);
      }
    },
  };
}

/** Kernel time of a process so far. Null if the system does not report it (`/proc/PID/stat` of Linux). */
export function kernelMs(pid: number | undefined): number | null {
  const ticks = Number(statOf(pid)[kernelTicks]);
  return Number.isFinite(ticks) ? ticks * clockTickMs : null;
}
