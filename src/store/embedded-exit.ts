/**
 * Agreement between a process that exits and the thread of its embedded store. A thread that is ended between the
 * beginning of a transaction and its end never ends: lmdb-js 3.5.6 then waits for a lock that this thread itself holds
 * (`EnvWrap::cleanupStrayTxns`), and the process waits for the thread. So the process that exits lets the thread
 * finish first, and the thread begins nothing any more.
 */
export type ExitState = Int32Array<SharedArrayBuffer>;

/** Places in the state; each holds 0 or 1. */
const working = 0;
const exiting = 1;

/** A disk that takes longer keeps the process from exiting; whoever runs it has to kill it. */
const longestWaitMs = 5000;

export function createExitState(): ExitState {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/** Called by the process when it exits: waits until the thread works no more. */
export function awaitWork(state: ExitState): void {
  Atomics.store(state, exiting, 1);
  Atomics.wait(state, working, 1, longestWaitMs);
}

/** Called by the thread for whatever opens a database or has a transaction. Ends it where the process exits. */
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
