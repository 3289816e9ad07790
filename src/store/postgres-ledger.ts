import { GatewayError } from '../errors.js';
import { checkBatch, checkSumRange, storedLine, writerTtlMs } from './ledger-format.js';
import { callLedger } from './postgres-call-tables.js';
import { copyCalls, createPostgresCalls } from './postgres-calls.js';
import {
  numberOf,
  type PostgresLink,
  pageOf,
  type Row,
  type Statement,
  sweepInSteps,
  textOf,
} from './postgres-link.js';
import { fromColumn, toColumn } from './postgres-text.js';
import type { Ledger, LedgerBatch, LedgerLine, LedgerSums, SumPage } from './store.js';

/** Each try of a batch gets twice the time of the one before, up to this multiple of the configured timeout. */
const mostTimes = 8;

/** Most changes of sums that are merged in one step. A step follows whenever as many were added. */
const mostMerged = 5000;

/**
 * Ledgers in PostgreSQL. The calls of a batch are sent by `COPY`, in the transaction in which a function of the server
 * stores the rest of the batch, its number first. So if a batch is sent again, that waits for the end of the first
 * transaction.
 */
export function createPostgresLedger(link: PostgresLink): Ledger & { sweep(): Promise<void> } {
  const merge = async (ledger: string): Promise<number> => {
    const [row] = await link.ask(statements.merge, [ledger, mostMerged]);
    return numberOf(row?.merged);
  };
  const mergeAll = async (ledger: string): Promise<void> => {
    while ((await merge(ledger)) >= mostMerged);
  };

  return {
    calls: createPostgresCalls(link),
    async append(ledger, batch, tries = 0) {
      checkBatch(batch);
      const times = Math.min(mostTimes, 2 ** tries);
      const row = await take(link, ledger, batch, times).catch((error: unknown) => {
        throw refusedForGood(error) ?? error;
      });
      if (row === undefined || row.last === null) return false;
      const last = numberOf(row.last);
      const isDue = Math.floor(last / mostMerged) > Math.floor((last - batch.sums.ids.length) / mostMerged);
      // The batch is stored. What is not merged now is merged later.
      if (isDue) merge(ledger).catch(() => undefined);
      return true;
    },
    async readLines(ledger, range, limit, from) {
      const place = from === null ? beforeAll : readPlace(from);
      const start = Math.max(0, range.from, place.at);
      const end = Number.isFinite(range.until) ? range.until : null;
      // In the millisecond at which the page begins, only lines after the previous page are read.
      const [writer, batch, index] = start > place.at ? ['', 0, 0] : [place.writer, place.batch, place.place];
      const rows = await link.ask(statements.lines, [ledger, start, end, writer, batch, index, limit + 1]);
      const { items, next } = pageOf(rows, limit, { itemOf: lineOf, placeOf });
      return { lines: items, next };
    },
    async readSums(ledger, range, limit, from) {
      checkSumRange(range);
      const asked = [ledger, toColumn(range.from), from, limit + 1];
      const rows =
        range.until === null
          ? await link.ask(sumsToTheEnd, asked)
          : await link.ask(sumsUntil, [...asked, toColumn(range.until)]);
      const { items, next } = pageOf(rows, limit, { itemOf: sumOf, placeOf: ({ id }) => textOf(id) });
      return { sums: items, next };
    },
    /** Removes what has expired, and merges the changes of sums. */
    async sweep() {
      for (const row of await link.ask(statements.ledgers, [])) await mergeAll(textOf(row.ledger));
      await link.ask(statements.sweepLines, []);
      await link.ask(statements.sweepCalls, []);
      for (const statement of [statements.sweepSums, statements.sweepWriters])
        await sweepInSteps(link, statement);
    },
  };
}

/**
 * Stores a batch. If it has calls, this takes a transaction, which ends with its connection if any part of it fails.
 * @param times multiple of the configured timeout that it may take
 */
async function take(
  link: PostgresLink,
  ledger: string,
  batch: LedgerBatch,
  times: number,
): Promise<Row | undefined> {
  const { calls = [] } = batch;
  const values = appendValues(ledger, batch);
  if (calls.length === 0 && times === 1) return (await link.ask(statements.append, values))[0];
  return link.call(async (ask, copy) => {
    await ask(statements.begin, []);
    if (times > 1) await ask(statements.allow, [`${times * link.timeoutMs}`]);
    const days = JSON.stringify(calls.map(({ at }) => at));
    const [row] = await ask(statements.take, [...values, days]);
    if (typeof row?.last === 'string')
      await copy(
        copyCalls,
        calls.map(({ text }) => text),
      );
    await ask(statements.commit, []);
    return row;
  }, times);
}

/**
 * SQLSTATEs about the content of a statement rather than the state of the server: unsupported characters, exceeded
 * limits.
 */
const refusals = /^(?:22P05|22021|54)/;

/** @returns the error for a batch that the server would refuse at every try; null for any other failure */
function refusedForGood(error: unknown): Error | null {
  const cause = error instanceof GatewayError ? error.cause : null;
  const code: unknown = cause instanceof Error ? Reflect.get(cause, 'code') : null;
  if (typeof code !== 'string' || !refusals.test(code)) return null;
  return new Error('PostgreSQL does not take the lines of these calls', { cause });
}

function appendValues(ledger: string, batch: LedgerBatch): readonly unknown[] {
  const { writer, number, lines, lineTtlMs, sums } = batch;
  const rows = JSON.stringify(lines.map(storedLine).map(({ at, value }) => [at, toColumn(value)]));
  const ttls = [Math.ceil(lineTtlMs), writerTtlMs];
  return [
    ledger,
    toColumn(writer),
    number,
    ...ttls,
    rows,
    JSON.stringify(changesOf(sums)),
    Math.ceil(Math.max(1, sums.ttlMs)),
  ];
}

/** Lists each sum that changes, with the amounts by name. */
function changesOf({ ids, names, values }: LedgerSums): (readonly [id: string, amounts: object])[] {
  const changes: (readonly [string, object])[] = [];
  for (const [row, id] of ids.entries()) {
    const amounts: [string, number][] = [];
    for (const [column, name] of names.entries()) {
      const value = values[row * names.length + column] ?? 0;
      if (value !== 0) amounts.push([name, value]);
    }
    if (amounts.length > 0) changes.push([toColumn(id), Object.fromEntries(amounts)]);
  }
  return changes;
}

/** Position of a line among all lines of its ledger. */
interface LinePlace {
  readonly at: number;
  readonly writer: string;
  readonly batch: number;
  readonly place: number;
}

const beforeAll: LinePlace = { at: -1, writer: '', batch: 0, place: 0 };

/** The writer is last, since it may be any text. */
function placeOf(row: Row): string {
  return `${textOf(row.at)} ${textOf(row.batch)} ${numberOf(row.place)} ${textOf(row.writer)}`;
}

function readPlace(text: string): LinePlace {
  const [at = '', batch = '', place = '', ...writer] = text.split(' ');
  return { at: Number(at), batch: Number(batch), place: Number(place), writer: writer.join(' ') };
}

function lineOf({ at, value }: Row): LedgerLine {
  return { at: numberOf(at), value: fromColumn(textOf(value)) };
}

function sumOf({ id, amounts }: Row): SumPage['sums'][number] {
  return { id: fromColumn(textOf(id)), values: valuesOf(amounts) };
}

/** Returns the numbers of a sum by name. */
export function valuesOf(amounts: unknown): Readonly<Record<string, number>> {
  const pairs = typeof amounts === 'object' && amounts !== null ? Object.entries(amounts) : [];
  return Object.fromEntries(pairs.map(([name, value]) => [name, numberOf(value)]));
}

const time = (parameter: string): string =>
  `timestamptz 'epoch' + milliseconds(${parameter}::double precision)`;

/** Skips locked rows, which are in use. A later sweep removes them. */
const sweepOf = (table: string, key: string): string =>
  `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE expires_at <= now()
LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING true AS gone`;

const statements = {
  append: { name: 'ledger_append', text: 'SELECT append_batch($1, $2, $3, $4, $5, $6, $7, $8) AS last' },
  begin: { name: 'begin', text: 'BEGIN' },
  /** Applies to this transaction. */
  allow: { name: 'ledger_allow', text: "SELECT set_config('statement_timeout', $1, true)" },
  take: {
    name: 'ledger_take',
    text: 'SELECT take_batch($1, $2, $3, $4, $5, $6, $7, $8, $9) AS last',
  },
  commit: { name: 'commit', text: 'COMMIT' },
  merge: { name: 'ledger_merge', text: 'SELECT merge_sums($1, $2) AS merged' },
  lines: {
    name: 'ledger_lines',
    text: `SELECT (extract(epoch FROM at) * 1000)::bigint AS at, writer, batch, place, value FROM ledger_lines
WHERE ledger = $1 AND at >= ${time('$2')} AND at > last_gone($1) AND at < coalesce(${time('$3')}, 'infinity')
AND (at > ${time('$2')} OR (writer, batch, place) > ($4, $5, $6))
ORDER BY ledger_lines.at, writer, batch, place LIMIT $7`,
  },
  ledgers: { name: 'ledger_names', text: 'SELECT ledger FROM ledgers' },
  sweepLines: { name: 'ledger_sweep_lines', text: 'SELECT sweep_lines()' },
  sweepCalls: {
    name: 'ledger_sweep_calls',
    text: `SELECT drop_days('calls', last_gone('${callLedger}'))`,
  },
  sweepSums: { name: 'ledger_sweep_sums', text: sweepOf('ledger_sums', 'ledger, id') },
  sweepWriters: { name: 'ledger_sweep_writers', text: sweepOf('ledger_writers', 'ledger, writer') },
} as const;

/**
 * Reads as many of the sums as a page has, with the changes that were added to any of them since.
 * @param end a condition in the statement's text, for a plan of its own. With a condition that may have no bound, every
 * row would be read
 */
const sumPageOf = (name: string, end: string): Statement => ({
  name,
  text: `WITH parts AS (
  (SELECT id, amounts FROM ledger_sums WHERE ledger = $1 AND id >= greatest($2, $3)
    AND ($3::text IS NULL OR id > $3)${end} AND expires_at > now() ORDER BY id LIMIT $4)
  UNION ALL
  SELECT id, amounts FROM ledger_sum_changes WHERE ledger = $1 AND id >= greatest($2, $3)
    AND ($3::text IS NULL OR id > $3)${end} AND expires_at > now()
), totals AS (
  SELECT id, key, greatest(-9007199254740991, least(9007199254740991, sum(value::numeric))) AS total
  FROM parts, jsonb_each_text(amounts) GROUP BY id, key
)
SELECT id, jsonb_object_agg(key, total) AS amounts FROM totals GROUP BY id ORDER BY id LIMIT $4`,
});
const sumsToTheEnd = sumPageOf('ledger_sums', '');
const sumsUntil = sumPageOf('ledger_sums_until', ' AND id < $5');
