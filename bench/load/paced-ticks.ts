import { parentPort, workerData } from 'node:worker_threads';

/**
 * Runs as a thread: posts the due time of each request of a constant rate at that time. A thread can sleep for
 * fractions of a millisecond (`Atomics.wait`). The timers of an event loop have whole milliseconds, and would send
 * the requests in bursts.
 */
const { rate, total } = workerData as { readonly rate: number; readonly total: number };
const never = new Int32Array(new SharedArrayBuffer(4));
const now = (): number => Number(process.hrtime.bigint()) / 1000;
const start = now();
for (let sent = 0; sent < total; sent += 1) {
  const due = start + (sent * 1e6) / rate;
  const left = due - now();
  if (left > 5) Atomics.wait(never, 0, 0, left / 1000);
  parentPort?.postMessage(due);
}
