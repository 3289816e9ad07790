import type { ClientBase } from 'pg';
import type { PostgresStoreSettings } from '../config/types.js';
import { budgetChanges, budgetWriters } from './postgres-budget-changes.js';
import { callTables } from './postgres-call-tables.js';
import { ledgerTables, sumChangesById } from './postgres-ledger-tables.js';
import { limitTables } from './postgres-limit-tables.js';
import { ownedByKey, ownedTables } from './postgres-owned-tables.js';
import { recordTables } from './postgres-record-tables.js';

/**
 * What makes the tables of a store, in order, all that are missing in one transaction. One that was ever released stays
 * as it is: what is to be different becomes another behind it. Only what one behind it makes anew is left out.
 */
export const migrations: readonly string[] = [
  [recordTables, ledgerTables, ownedTables, limitTables].join('\n'),
  callTables,
  budgetChanges,
  sumChangesById,
  budgetWriters,
  ownedByKey,
];

/** Drawn by lot: of locks that programs agree on, this one is for whoever makes or changes the tables. */
const migrationLock = 7_240_813_322_017_345n;

const idleInTransactionMs = 60_000;

/** A standby, or a server that was set to take no changes: it is none that can be used. */
export class ReadOnlyServer extends Error {
  constructor() {
    super('the server is read-only, as a standby is');
  }
}

/**
 * Makes a connection ready: it works in the schema of the settings, whose tables are made or brought up to date.
 * @param timeoutMs after which the server gives up a statement, and a transaction in which nothing happens after a
 * minute; 0 for no bounds
 * @throws ReadOnlyServer for one that takes no changes
 * @throws Error when the tables were made by a later version of the gateway, or when the server does not answer
 */
export async function prepareConnection(
  client: ClientBase,
  { schema }: Pick<PostgresStoreSettings, 'schema'>,
  timeoutMs: number,
): Promise<void> {
  const version = await inTime(openSchema(client, schema, timeoutMs), timeoutMs);
  if (version === migrations.length) return;
  if (version > migrations.length) {
    throw new Error(
      `the tables of the store are of form ${version}, and this gateway knows ${migrations.length}`,
    );
  }
  await migrate(client, schema);
}

/** @returns how many migrations were made, 0 where there is nothing yet */
async function openSchema(client: ClientBase, schema: string, timeoutMs: number): Promise<number> {
  // Names of schemas are checked with the config.
  await client.query(
    `SET search_path TO "${schema}"; SET timezone TO 'UTC'; SET client_min_messages TO warning;` +
      ` SET statement_timeout TO ${timeoutMs};` +
      ` SET idle_in_transaction_session_timeout TO ${timeoutMs === 0 ? 0 : idleInTransactionMs}`,
  );
  const { rows } = await client.query<{ made: string | null; read_only: string }>(
    `SELECT to_regclass('"${schema}".migrations')::text AS made,
current_setting('transaction_read_only') AS read_only`,
  );
  if (rows[0]?.read_only === 'on') throw new ReadOnlyServer();
  return rows[0]?.made == null ? 0 : readVersion(client);
}

/** A server that is gone since it was connected to would be waited for as long as the system keeps the connection. */
async function inTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  if (timeoutMs === 0) return work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`PostgreSQL gave no answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function readVersion(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ number: number }>(
    'SELECT coalesce(max(number), 0) AS number FROM migrations',
  );
  return rows[0]?.number ?? 0;
}

/** Makes those that are missing, in order, while everybody else who would waits. */
async function migrate(client: ClientBase, schema: string): Promise<void> {
  await client.query('BEGIN');
  await client.query('SET LOCAL statement_timeout TO 0');
  await client.query('SELECT pg_advisory_xact_lock($1)', [`${migrationLock}`]);
  const { rows } = await client.query<{ made: string | null }>(
    `SELECT to_regnamespace('"${schema}"')::text AS made`,
  );
  if (rows[0]?.made == null) await client.query(`CREATE SCHEMA "${schema}"`);
  await client.query(
    'CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())',
  );
  const version = await readVersion(client);
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue;
    await client.query(migration);
    await client.query('INSERT INTO migrations (number) VALUES ($1)', [index + 1]);
  }
  await client.query('COMMIT');
}
