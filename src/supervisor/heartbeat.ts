/** Between two signs of life of a worker, and between two looks at who has given none. */
export const heartbeatMs = 1000;
/** A worker that is silent for so many looks in a row hangs: no work of ours blocks its event loop for that long. */
const mostMissed = 10;

/** Watches processes that tell, once every `heartbeatMs`, that their event loop still turns. */
export interface HeartbeatWatch<Process> {
  /** A process gave a sign of life: it is watched from the first one on. */
  beat(process: Process): void;
  /** A process has ended. */
  forget(process: Process): void;
  /** Counts for every process whether it was silent since the last look: call it every `heartbeatMs`. */
  look(): void;
}

/**
 * Looks are counted, not time: after a moment in which the whole host stood still nobody has missed more than one.
 * @param onSilent is called once for a process that has been silent for too long; it is watched no more
 */
export function watchHeartbeats<Process>(onSilent: (process: Process) => void): HeartbeatWatch<Process> {
  const missed = new Map<Process, number>();
  return {
    beat(process) {
      missed.set(process, 0);
    },
    forget(process) {
      missed.delete(process);
    },
    look() {
      for (const [process, count] of missed) {
        if (count < mostMissed) {
          missed.set(process, count + 1);
          continue;
        }
        missed.delete(process);
        onSilent(process);
      }
    },
  };
}
