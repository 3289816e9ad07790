import { parentPort, workerData } from 'node:worker_threads';

/**
 * Run as a thread: posts the due time of each request of a constant rate at that time. A thread may sleep exactly
 * (`Atomics.wait` takes fractions of a millisecond), where the timers of an event loop come in whole milliseconds and
 * would make bursts of the requests.
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
