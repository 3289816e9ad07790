import { statOf } from '../store/process-mark.js';

/** Between two heartbeats of a worker, and between two looks at who has given none. */
export const heartbeatMs = 1000;
/** A worker that is silent for so many looks in a row hangs: no work of ours blocks its event loop for that long. */
const mostMissed = 10;
/** So many looks in a row, where the system does work for it all the while. */
const mostBusy = 20;
/** Work of the system for a process, from one look to the next, that endless work of its own does not come with. */
const busyMs = 30;
/** A tick of `/proc/PID/stat`. */
const clockTickMs = 10;
/** Field 15, of those from the third on. */
const kernelTicks = 12;

/** Of one process, since its last heartbeat. */
interface Silence {
  looks: number;
  busyLooks: number;
  /** Its kernel time at the last look; null where that is not known. */
  kernelMs: number | null;
}

/**
 * Watches processes that tell, once every `heartbeatMs`, that their event loop still turns. Looks are counted, not time: after a moment in which the whole host stood still nobody has missed more than one. A
 * worker whose sockets all have much to read gives no heartbeat before it has read it, and yet it serves; an endless
 * loop asks nothing of the system.
 * @param onSilent is called once for a process that has been silent for too long; it is watched no more
 * @param kernelMsOf how long the system has worked for a process, or null where it does not say
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
    /** A process gave a heartbeat: it is watched from the first one on. */
    beat(process: Process): void {
      const silence = silences.get(process);
      if (silence === undefined) silences.set(process, { looks: 0, busyLooks: 0, kernelMs: null });
      else {
        silence.looks = 0;
        silence.busyLooks = 0;
        silence.kernelMs = null;
      }
    },
    /** A process has ended. */
    forget(process: Process): void {
      silences.delete(process);
    },
    /** Counts for every process whether it was silent since the last look: call it every `heartbeatMs`. */
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

/** How long the system has worked for a process so far; null where nobody tells (`/proc/PID/stat` of Linux). */
export function kernelMs(pid: number | undefined): number | null {
  const ticks = Number(statOf(pid)[kernelTicks]);
  return Number.isFinite(ticks) ? ticks * clockTickMs : null;
}
