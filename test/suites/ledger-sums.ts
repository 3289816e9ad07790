import type { LedgerSums } from '../../src/store/store.js';

type Numbers = Readonly<Record<string, number>>;

/** What a batch adds to sums, as a table. */
export function sumTable(
  ttlMs: number,
  sums: readonly { readonly id: string; readonly add: Numbers }[],
): LedgerSums {
  const names = [...new Set(sums.flatMap(({ add }) => Object.keys(add)))];
  const rows = sums.map(({ add }) => {
    const numbers = new Map(Object.entries(add));
    return names.map((name) => numbers.get(name) ?? 0);
  });
  return { ttlMs, names, ids: sums.map(({ id }) => id), values: Float64Array.from(rows.flat()) };
}

/** Returns what such a table adds to each sum, without zeros. */
export function sumsById({ names, ids, values }: Omit<LedgerSums, 'ttlMs'>): Map<string, Numbers> {
  return new Map(
    ids.map((id, row) => {
      const numbers = names.map((name, column) => [name, values[row * names.length + column] ?? 0] as const);
      return [id, Object.fromEntries(numbers.filter(([, value]) => value !== 0))];
    }),
  );
}
