import { requestSeries } from '../wire/request-id.js';
import { type CallTable, keptColumns, rowLength } from './call-table.js';
import { packColumns } from './columns.js';

/** The form of pages. */
export const version = 2;

/** The calls of a table as one text: a page of the ledger. */
export function writePage(table: CallTable): string {
  const { at, rows, length } = table;
  const columns = packColumns(rows, rowLength, keptColumns, length).toString('base64');
  const [callGroups, series, ids] = [table.callGroups, seriesOf(table), table.ids].map((part) =>
    JSON.stringify(part),
  );
  const outline = `"v":${version},"at":${at},"manners":${callGroups},"series":${series},"ids":${ids}`;
  return `{${outline},"calls":${length},"columns":"${columns}"}`;
}

/** What the numbered ids of its calls begin with; null where it has none. */
function seriesOf({ ids, length }: CallTable): string | null {
  return ids.length < length ? requestSeries : null;
}
