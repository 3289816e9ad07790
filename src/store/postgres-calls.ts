import { callColumns, callLedger } from './postgres-call-tables.js';
import { numberOf, type PostgresLink, pageOf, type Row, type Statement, textOf } from './postgres-link.js';
import { toColumn } from './postgres-text.js';
import type { CallFilter, StoredCall, StoredCalls } from './store.js';

/** Most request ids in one lookup. */
const idsAtOnce = 500;

/** Reads calls from a PostgreSQL store. */
export function createPostgresCalls(link: PostgresLink): StoredCalls {
  return {
    async read({ range, ...filter }, limit, from) {
      const { statement, values } = pageStatement(filter);
      const [after, place] = from === null ? ['-infinity', 0] : readPlace(from);
      const bounds = [timeText(range.from), timeText(range.until), after, place, limit + 1];
      const rows = await link.ask(statement, [...bounds, ...values]);
      const { items, next } = pageOf(rows, limit, { itemOf: callOf, placeOf });
      return { calls: items, next };
    },
    async find(requestIds) {
      const found: StoredCall[] = [];
      for (let at = 0; at < requestIds.length; at += idsAtOnce) {
        const ids = requestIds.slice(at, at + idsAtOnce);
        for (const row of await link.ask(byRequest, [ids])) found.push(callOf(row));
      }
      return found;
    },
  };
}

/** Statement that receives rows in the text format of `COPY`. */
export const copyCalls = `COPY calls (${callColumns.join(', ')}) FROM STDIN`;

/** First and last time that both JavaScript and PostgreSQL accept. */
const [firstTime, lastTime] = [0, Date.UTC(9999, 11, 31)];

function timeText(at: number): string {
  if (at > lastTime) return 'infinity';
  return new Date(Math.max(firstTime, Math.ceil(at))).toISOString();
}

function placeOf(row: Row): string {
  return `${textOf(row.place_at)}|${textOf(row.place)}`;
}

function readPlace(text: string): readonly [at: string, place: number] {
  const [at = '', place = ''] = text.split('|');
  return [at, Number(place)];
}

/** Converts a row of `callsInOrder`. */
export function callOf({ at_ms: at, place: _place, place_at: _placeAt, ...values }: Row): StoredCall {
  return { at: numberOf(at), values };
}

const columns = callColumns.filter((name) => name !== 'at').join(', ');
const times = '(extract(epoch FROM at) * 1000)::bigint AS at_ms, at::text AS place_at, place';

/** Selects all calls that are kept, in the order of their time. */
export const callsInOrder = `SELECT ${times}, ${columns} FROM calls WHERE at > last_gone('${callLedger}') ORDER BY calls.at, place`;

const newerCounts: readonly string[] = ['video_input_tokens', 'characters'];

/** Inserts calls from JSON: an array of objects by column name, which of earlier versions lack some columns. */
export const insertCalls = `INSERT INTO calls (${callColumns.join(', ')})
SELECT ${callColumns
  .map((name) => (newerCounts.includes(name) ? `coalesce(${name}, 0)` : name))
  .join(', ')} FROM json_populate_recordset(NULL::calls, $1)`;

/** Converts a call to an object for `insertCalls`. */
export function callJson({ at, values }: StoredCall): Readonly<Record<string, unknown>> {
  return { ...values, at: timeText(at) };
}

/** @returns the statement, and the values after those of its bounds. Each kind of filter has its own plan */
function pageStatement({ keyId, model }: CallFilter): {
  readonly statement: Statement;
  readonly values: readonly string[];
} {
  const values: string[] = [];
  const conditionOf = (column: string, value: string | null | undefined): string => {
    if (value === undefined) return '';
    if (value === null) return ` AND ${column} IS NULL`;
    values.push(toColumn(value));
    return ` AND ${column} = $${5 + values.length}`;
  };
  const conditions = conditionOf('key_id', keyId) + conditionOf('model', model);
  const statement = {
    name: `calls_page${conditions}`.replaceAll(' ', '_'),
    text: `SELECT ${times}, ${columns} FROM calls
WHERE at >= $1::timestamptz AND at < $2::timestamptz AND at > last_gone('${callLedger}')
AND (at, place) > ($3::timestamptz, $4::bigint)${conditions} ORDER BY calls.at, place LIMIT $5`,
  };
  return { statement, values };
}

const byRequest = {
  name: 'calls_by_request',
  text: `SELECT ${times}, ${columns} FROM calls WHERE request_id = ANY ($1::text[])`,
} as const;
