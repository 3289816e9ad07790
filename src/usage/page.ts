import { requestSeries } from '../request-id.js';
import { type CallTable, columnCount, type Manner, rowLength } from './call-table.js';
import { packColumns } from './columns.js';
import { type SumCollector, sum, type UsageTotals } from './sums.js';

/** The form of pages. */
export const version = 2;

/** The calls of a table as one text: a page of the ledger. They are added to the sums. */
export function writePage(table: CallTable, sums: SumCollector): string {
  const { at, rows, length } = table;
  addTo(sums, table);
  const columns = packColumns(rows, rowLength, columnCount, length).toString('base64');
  const [manners, series, ids] = [table.manners, seriesOf(table), table.ids].map((part) =>
    JSON.stringify(part),
  );
  const outline = `"v":${version},"at":${at},"manners":${manners},"series":${series},"ids":${ids}`;
  return `{${outline},"calls":${length},"columns":"${columns}"}`;
}

/** What the numbered ids of its calls begin with; null where it has none. */
function seriesOf({ ids, length }: CallTable): string | null {
  return ids.length < length ? requestSeries : null;
}

function addTo(sums: SumCollector, { at, manners, rows, length }: CallTable): void {
  const totals = manners.map(({ keyId, model }) => sums.totalsOf(at, keyId, model));
  for (let call = 0; call < length; call++) {
    const start = call * rowLength;
    const index = rows[start] as number;
    addRow(totals[index] as UsageTotals, manners[index] as Manner, rows, start);
  }
}

/** Adds the numbers of a call to the sums. One for each call, so nothing is made for it. */
function addRow(
  totals: UsageTotals,
  { outcome, tokensKnown }: Manner,
  rows: Float64Array,
  start: number,
): void {
  totals.calls += 1;
  if (outcome === 'incomplete') totals.incomplete += 1;
  if (outcome === 'refused') totals.refused += 1;
  if (outcome === 'client_gone') totals.clientGone += 1;
  if (outcome === 'upstream_error') totals.upstreamErrors += 1;
  if (tokensKnown === 'partial' || tokensKnown === 'estimated') totals.inexact += 1;
  totals.inputTokens = sum(totals.inputTokens, rows[start + 3] as number);
  totals.outputTokens = sum(totals.outputTokens, rows[start + 4] as number);
  totals.cachedTokens = sum(totals.cachedTokens, rows[start + 5] as number);
  totals.cacheWrittenTokens = sum(totals.cacheWrittenTokens, rows[start + 6] as number);
  totals.reasoningTokens = sum(totals.reasoningTokens, rows[start + 7] as number);
  totals.bytesIn = sum(totals.bytesIn, rows[start + 8] as number);
  totals.bytesOut = sum(totals.bytesOut, rows[start + 9] as number);
  totals.mediaMs = sum(totals.mediaMs, (rows[start + 10] as number) * 1000);
  totals.costNanoUsd = sum(totals.costNanoUsd, rows[start + 14] as number);
}
