import type { StoreSettings } from '../../src/config/types.js';
import { createStore } from '../../src/store/create.js';
import type { LedgerBatch } from '../../src/store/store.js';
import { sumTable } from './ledger-sums.js';

/** Runs as a separate process, started by the suite of the ledgers: appends batches until it is killed. */

/** The settings of such a process. */
export interface LedgerOrder {
  readonly settings: StoreSettings;
  readonly ledger: string;
  readonly writer: string;
}

/** Lines of each batch. */
export const batchLines = 20;

/** A batch whose lines all count in two sums. */
export function countedBatch(writer: string, number: number): LedgerBatch {
  const at = 1_000_000 + number;
  const lines = Array.from({ length: batchLines }, (_, index) => ({
    at,
    value: `${writer} ${number} ${index}`,
  }));
  const add = { lines: batchLines };
  const sums = sumTable(
    60_000,
    ['all', writer].map((id) => ({ id, add })),
  );
  return { writer, number, lines, lineTtlMs: Date.now(), sums };
}

/** Sends every batch twice, and prints its number when the store has it. */
async function appendForEver({ settings, ledger, writer }: LedgerOrder): Promise<never> {
  const store = createStore(settings);
  for (let number = 1; ; number++) {
    const batch = countedBatch(writer, number);
    await Promise.all([store.append(ledger, batch), store.append(ledger, batch)]);
    process.send?.(number);
  }
}

const [, script, order] = process.argv;
if (order !== undefined && script === import.meta.filename) {
  await appendForEver(JSON.parse(order) as LedgerOrder);
}
