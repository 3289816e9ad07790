import { GatewayError } from '../../src/errors.js';
import { storedLine } from '../../src/store/ledger-format.js';
import type { Ledger, LedgerBatch } from '../../src/store/store.js';
import { readPage } from '../../src/usage/queries.js';

/** A ledger in memory that fails on demand. */
interface LedgerDouble extends Pick<Ledger, 'append' | 'calls'> {
  /** Batches that were taken, in order. */
  readonly taken: LedgerBatch[];
  /** Every batch that was offered, in order. */
  readonly offered: LedgerBatch[];
  /** What an append rejects with; null while all is well. */
  failure: Error | null;
  /** A batch is taken before the failure. */
  takesFirst: boolean;
  /** Appends under way that were held back. */
  readonly held: (() => void)[];
  holds: boolean;
  mostAtOnce: number;
}

export const unreachable = new GatewayError('store_unavailable', null);

export function ledgerDouble(): LedgerDouble {
  const numbers = new Map<string, number>();
  let underWay = 0;
  const double: LedgerDouble = {
    calls: null,
    taken: [],
    offered: [],
    failure: null,
    takesFirst: false,
    held: [],
    holds: false,
    mostAtOnce: 0,
    async append(_ledger, given) {
      // Its pages may be overwritten once this call has ended.
      const batch: LedgerBatch = { ...given, lines: given.lines.map(storedLine) };
      underWay++;
      double.mostAtOnce = Math.max(double.mostAtOnce, underWay);
      double.offered.push(batch);
      try {
        if (double.holds) await new Promise<void>((resolve) => double.held.push(resolve));
        if (double.failure !== null && !double.takesFirst) throw double.failure;
        const isNew = (numbers.get(batch.writer) ?? 0) < batch.number;
        numbers.set(batch.writer, batch.number);
        if (isNew) double.taken.push(batch);
        if (double.failure !== null) throw double.failure;
        return isNew;
      } finally {
        underWay--;
      }
    },
  };
  return double;
}

/** Ids of the requests in batches. */
export function requestsOf(batches: readonly LedgerBatch[]): string[] {
  return batches.flatMap(({ lines }) =>
    lines.flatMap((line) => readPage(storedLine(line).value).map(({ requestId }) => requestId)),
  );
}
