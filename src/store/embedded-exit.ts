/**
 * Synchronizes a process that exits with the thread of its embedded store. A thread that is terminated within a
 * transaction never ends: lmdb-js 3.5.6 then waits for a lock that the thread itself holds
 * (`EnvWrap::cleanupStrayTxns`), and the process waits for the thread. So the exiting process lets the thread finish
 * first, and the thread starts nothing more.
 */
export type ExitState = Int32Array<SharedArrayBuffer>;

/** Indexes in the state. Each value is 0 or 1. */
const working = 0;
const exiting = 1;

/** Longest wait of an exiting process. If the disk takes longer, the process does not exit and has to be killed. */
const longestWaitMs = 5000;

export function createExitState(): ExitState {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/** Called by the process when it exits. Waits until the thread does no work. */
export function awaitWork(state: ExitState): void {
  Atomics.store(state, exiting, 1);
  Atomics.wait(state, working, 1, longestWaitMs);
}

/**
 * Called by the thread for work that opens a database or has a transaction. Blocks the thread forever if the process
 * exits.
 */
export function doWork<T>(state: ExitState, work: () => T): T {
  Atomics.store(state, working, 1);
  if (Atomics.load(state, exiting) === 1) {
    stopWork(state);
    Atomics.wait(state, exiting, 1);
  }
  try {
    return work();
  } finally {
    stopWork(state);
  }
}

function stopWork(state: ExitState): void {
  Atomics.store(state, working, 0);
  Atomics.notify(state, working);
}
