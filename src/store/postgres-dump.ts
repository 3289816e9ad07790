import type { Client } from 'pg';
import type { PostgresStoreSettings } from '../config/types.js';
import { errorCode } from '../errors.js';
import { formatAuthority } from '../wire/authority.js';
import { type DumpEntry, type DumpTarget, type EntryOf, entriesAtOnce } from './dump.js';
import { callJson, callOf, callsInOrder, insertCalls } from './postgres-calls.js';
import { valuesOf } from './postgres-ledger.js';
import { clientConfig, numberOf, type Row, textOf } from './postgres-link.js';
import { prepareConnection, prepareReading, ReadOnlyServer } from './postgres-schema.js';
import { digestOf, fromColumn, hashedKey, toColumn, toKey } from './postgres-text.js';

const connectMs = 10_000;

/**
 * Connects to the first place that can be used. Statements have no timeout.
 * @param prepare rejects for a place that cannot be used
 */
async function connect(
  settings: PostgresStoreSettings,
  prepare: (client: Client) => Promise<void>,
): Promise<Client> {
  const { default: pg } = await import('pg');
  for (let tries = 0; ; tries += 1) {
    const config = clientConfig(settings, connectMs, tries);
    const client = new pg.Client(config);
    // An error between two statements also fails the next one.
    client.on('error', () => {});
    try {
      await client.connect().catch((error: unknown) => {
        throw new Error(
          `cannot connect to PostgreSQL at ${formatAuthority(config.host ?? '', config.port ?? 0)}: ${reasonOf(error)}`,
        );
      });
      await prepare(client);
      return client;
    } catch (error) {
      await client.end();
      if (tries >= settings.others.length) throw error;
    }
  }
}

/** The driver reports a name with several addresses as an error without a message. */
function reasonOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : errorCode(error);
}

function connectToWrite(settings: PostgresStoreSettings): Promise<Client> {
  return connect(settings, (client) => prepareConnection(client, settings, 0));
}

/** Connects to the first place whose server accepts changes, or else to a standby, which may lag. */
async function connectToRead(settings: PostgresStoreSettings): Promise<Client> {
  let isAnyReadOnly = false;
  try {
    return await connect(settings, async (client) => {
      const { isReadOnly } = await prepareReading(client, settings);
      isAnyReadOnly ||= isReadOnly;
      if (isReadOnly) throw new ReadOnlyServer();
    });
  } catch (error) {
    if (!isAnyReadOnly) throw error;
    return connect(settings, async (client) => {
      await prepareReading(client, settings);
    });
  }
}

/** Reads a PostgreSQL store in pages, as of one moment. */
export async function* readPostgres(settings: PostgresStoreSettings): AsyncGenerator<readonly DumpEntry[]> {
  const client = await connectToRead(settings);
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    for (const { text, entryOf } of readings) {
      await client.query(`DECLARE entries NO SCROLL CURSOR FOR ${text}`);
      let rows: readonly Row[];
      do {
        ({ rows } = await client.query<Row>(`FETCH ${entriesAtOnce} FROM entries`));
        yield rows.map(entryOf);
      } while (rows.length > 0);
      await client.query('CLOSE entries');
    }
  } finally {
    await client.end();
  }
}

const milliseconds = (column: string): string => `floor(extract(epoch FROM ${column}) * 1000)::bigint`;

interface Reading {
  readonly text: string;
  entryOf(row: Row): DumpEntry;
}

const readings: readonly Reading[] = [
  {
    text: `SELECT collection, id, value, revision, ${milliseconds('expires_at')} AS expires_at FROM records
WHERE expires_at > now()`,
    entryOf: (row) => ({
      type: 'record',
      collection: textOf(row.collection),
      id: fromColumn(textOf(row.id)),
      value: fromColumn(textOf(row.value)),
      revision: numberOf(row.revision),
      expiresAt: numberOf(row.expires_at),
    }),
  },
  {
    text: `SELECT owner, key, value, bytes, ${milliseconds('expires_at')} AS expires_at FROM owned_records
WHERE expires_at > now()`,
    entryOf(row) {
      const digest = digestOf(textOf(row.key));
      return {
        type: 'owned',
        owner: textOf(row.owner),
        id: digest === null ? fromColumn(textOf(row.key)) : null,
        idHash: digest?.toString('hex') ?? null,
        value: fromColumn(textOf(row.value)),
        bytes: numberOf(row.bytes),
        expiresAt: numberOf(row.expires_at),
      };
    },
  },
  {
    text: 'SELECT ledger, line_ttl_ms FROM ledgers',
    entryOf: (row) => ({
      type: 'ledger',
      ledger: textOf(row.ledger),
      lineTtlMs: numberOf(row.line_ttl_ms),
    }),
  },
  {
    text: `SELECT ledger, (extract(epoch FROM at) * 1000)::bigint AS at_ms, value FROM ledger_lines
WHERE at > last_gone(ledger) ORDER BY ledger, at, writer, batch, place`,
    entryOf: (row) => ({
      type: 'line',
      ledger: textOf(row.ledger),
      at: numberOf(row.at_ms),
      value: fromColumn(textOf(row.value)),
    }),
  },
  {
    text: callsInOrder,
    entryOf: (row) => ({ type: 'call', ...callOf(row) }),
  },
  {
    text: `SELECT ledger, id, ${milliseconds('max(until)')} AS expires_at,
jsonb_object_agg(key, greatest(-9007199254740991, least(9007199254740991, total))) AS amounts
FROM (
  SELECT ledger, id, key, sum(value::numeric) AS total, max(expires_at) AS until FROM (
    SELECT ledger, id, amounts, expires_at FROM ledger_sums WHERE expires_at > now()
    UNION ALL SELECT ledger, id, amounts, expires_at FROM ledger_sum_changes WHERE expires_at > now()
  ) parts, jsonb_each_text(amounts) GROUP BY ledger, id, key
) totals GROUP BY ledger, id`,
    entryOf: (row) => ({
      type: 'sum',
      ledger: textOf(row.ledger),
      id: fromColumn(textOf(row.id)),
      values: valuesOf(row.amounts),
      expiresAt: numberOf(row.expires_at),
    }),
  },
];

/**
 * Writes into a PostgreSQL store, in one transaction.
 * @throws Error if the store is not empty
 */
export async function writePostgres(settings: PostgresStoreSettings): Promise<DumpTarget> {
  const client = await connectToWrite(settings);
  await client.query('BEGIN');
  const { rows } = await client.query<{ full: boolean }>(
    'SELECT EXISTS (SELECT 1 FROM records) OR EXISTS (SELECT 1 FROM owned_records) OR EXISTS (SELECT 1 FROM ledgers) AS full',
  );
  if (rows[0]?.full === true) {
    await client.end();
    throw new Error('there is something in the store already');
  }
  let lines = 0;
  return {
    async write(entries) {
      const of = <Type extends DumpEntry['type']>(type: Type) =>
        entries.filter((entry): entry is Extract<DumpEntry, { type: Type }> => entry.type === type);
      const insert = async (text: string, values: readonly unknown[]): Promise<void> => {
        if (values.length > 0) await client.query(text, [JSON.stringify(values)]);
      };
      await insert(insertions.record, of('record').map(recordRow));
      await insert(insertions.owned, of('owned').map(ownedRow));
      await insert(
        insertions.ledger,
        of('ledger').map(({ ledger, lineTtlMs }) => [ledger, lineTtlMs]),
      );
      const lineRows = of('line').map(({ ledger, at, value }, index) => [
        ledger,
        at,
        lines + index,
        toColumn(value),
      ]);
      lines += lineRows.length;
      await insert(insertions.days, lineRows);
      await insert(insertions.line, lineRows);
      const calls = of('call');
      await insert(
        insertions.callDays,
        calls.map(({ at }) => at),
      );
      await insert(insertCalls, calls.map(callJson));
      await insert(
        insertions.sum,
        of('sum').map(({ ledger, id, values, expiresAt }) => [ledger, toColumn(id), values, expiresAt]),
      );
    },
    async finish() {
      await client.query(insertions.ownedBytes);
      await client.query(insertions.ownedTotals);
      await client.query('COMMIT');
      await client.end();
    },
    async discard() {
      // What was not committed is rolled back.
      await client.end();
    },
  };
}

function recordRow({ collection, id, value, revision, expiresAt }: EntryOf<'record'>): readonly unknown[] {
  return [collection, toKey(id), toColumn(id), toColumn(value), revision, expiresAt];
}

function ownedRow({ owner, id, idHash, value, bytes, expiresAt }: EntryOf<'owned'>): readonly unknown[] {
  const key = id === null ? hashedKey(Buffer.from(idHash ?? '', 'hex')) : toKey(id);
  return [owner, key, toColumn(value), bytes, expiresAt];
}

const time = (place: number): string =>
  `timestamptz 'epoch' + milliseconds((e->>${place})::double precision)`;
const from = 'FROM json_array_elements($1) e';

const insertions = {
  record: `INSERT INTO records SELECT e->>0, e->>1, e->>2, e->>3, (e->>4)::bigint, ${time(5)} ${from}`,
  owned: `INSERT INTO owned_records SELECT e->>0, e->>1, e->>2, (e->>3)::bigint, ${time(4)} ${from}`,
  ownedBytes: 'INSERT INTO owned_bytes SELECT owner, sum(bytes) FROM owned_records GROUP BY owner',
  ownedTotals: `UPDATE owned_totals t SET bytes = s.bytes FROM (
SELECT hashtext(owner) & 15 AS shard, sum(bytes) AS bytes FROM owned_bytes GROUP BY 1
) s WHERE s.shard = t.shard`,
  ledger: `INSERT INTO ledgers SELECT e->>0, (e->>1)::bigint ${from}`,
  days: `SELECT make_day(day) FROM (SELECT DISTINCT date_trunc('day', ${time(1)}) AS day ${from}) days`,
  callDays: `SELECT make_day_of('calls', day) FROM (
SELECT DISTINCT date_trunc('day', timestamptz 'epoch' + milliseconds(e::double precision)) AS day
FROM json_array_elements_text($1) e) days`,
  line: `INSERT INTO ledger_lines SELECT e->>0, ${time(1)}, 'import', 1, (e->>2)::integer, e->>3 ${from}`,
  sum: `INSERT INTO ledger_sums SELECT e->>0, e->>1, (e->2)::jsonb, ${time(3)} ${from}`,
} as const;
