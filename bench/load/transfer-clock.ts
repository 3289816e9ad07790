import { setTimeout as wait } from 'node:timers/promises';
import { describeErrors } from './load.js';
import type { TransferPlan, TransferResult } from './transfer.js';

/** Counts of a client of transfers. */
export interface TransferCounts {
  bytes: number;
  complete: number;
  broken: number;
  /** Answers that differ from the expected one. */
  wrong: number;
}

/**
 * Waits for the warm-up, prints a line, waits for the measurement, prints the result as a second line and ends the
 * process.
 */
export async function reportTransfer(plan: TransferPlan, counts: TransferCounts): Promise<void> {
  await wait(plan.warmUpSeconds * 1000);
  process.stdout.write('null\n');
  const before = { bytes: counts.bytes, at: performance.now() };
  await wait(plan.seconds * 1000);
  const bytesPerSecond = ((counts.bytes - before.bytes) * 1000) / (performance.now() - before.at);
  const errors = describeErrors({
    'transfers that broke': counts.broken,
    'answers that are wrong': counts.wrong,
    'runs in which nothing was complete': counts.complete === 0 ? 1 : 0,
  });
  const result: TransferResult = { bytesPerSecond, complete: counts.complete, errors };
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
}
