import type { ClientBase } from 'pg';
import type { PostgresStoreSettings } from '../config/types.js';
import { errorCode } from '../errors.js';
import { callCharacters, callPlaces, callTables } from './postgres-call-tables.js';
import { ledgerTables, sumChangesById } from './postgres-ledger-tables.js';
import { budgetChanges, budgetWriters, limitTables } from './postgres-limit-tables.js';
import { ownedByKey, ownedTables, recordTables } from './postgres-owned-tables.js';

/**
 * Statements that create the tables of a store, in order. All missing ones are executed in one transaction. A released
 * migration never changes: a difference is a new migration after it. Only what a later one creates again is left out.
 */
export const migrations: readonly string[] = [
  [recordTables, ledgerTables, ownedTables, limitTables].join('\n'),
  callTables,
  budgetChanges,
  sumChangesById,
  budgetWriters,
  ownedByKey,
  callPlaces,
  callCharacters,
];

/** A random number: the advisory lock for creating or changing the tables. */
const migrationLock = 7_240_813_322_017_345n;

const idleInTransactionMs = 60_000;

/** The server is a standby, or is configured to accept no changes. Gateways cannot use it. */
export class ReadOnlyServer extends Error {
  constructor() {
    super('the server is read-only, as a standby is');
  }
}

/** The store cannot be used until somebody changes it, or the config. */
export class UnusableStore extends Error {}

/**
 * Classes of errors of a server that also last until then: https://www.postgresql.org/docs/current/errcodes-appendix.html
 * Credentials, a database or schema that does not exist, rights and tables. 55P03: others keep a table from being
 * brought up to date.
 */
const lastingErrors = /^(28|3D|3F|42)|^55P03$/;

/** Whether an error that a call of the store has met stays until somebody changes the store, or the config. */
export function isLasting(error: unknown): error is Error {
  return error instanceof UnusableStore || lastingErrors.test(errorCode(error));
}

/**
 * Prepares a connection: sets the schema of the settings, and creates or updates its tables.
 * @param timeoutMs timeout of a statement. A transaction in which nothing happens ends after a minute. 0 for no bounds
 * @param onUpdate called before existing tables are updated
 * @throws ReadOnlyServer if the server accepts no changes
 * @throws UnusableStore if the tables were created by a later version of the gateway
 * @throws Error if the server does not answer
 */
export async function prepareConnection(
  client: ClientBase,
  { schema }: Pick<PostgresStoreSettings, 'schema'>,
  timeoutMs: number,
  onUpdate: () => void = () => {},
): Promise<void> {
  const { version, isReadOnly } = await inTime(openSchema(client, schema, timeoutMs), timeoutMs);
  if (isReadOnly) throw new ReadOnlyServer();
  if (version === migrations.length) return;
  if (version > migrations.length) throw laterForm(version);
  if (version > 0) onUpdate();
  await migrate(client, schema);
}

/**
 * Prepares a connection for reading alone: nothing is created or updated, since gateways of the release that has made
 * the tables may be running. Statements have no timeout.
 * @returns whether the server accepts no changes
 * @throws Error if there are no tables, or not those of this version of the gateway
 */
export async function prepareReading(
  client: ClientBase,
  { schema }: Pick<PostgresStoreSettings, 'schema'>,
): Promise<{ readonly isReadOnly: boolean }> {
  const { version, isReadOnly } = await openSchema(client, schema, 0);
  if (version === 0) throw new Error(`there is no store in this database (schema ${schema})`);
  if (version > migrations.length) throw laterForm(version);
  if (version < migrations.length)
    throw new Error(
      `the tables of the store are of form ${version}, and this release reads ${migrations.length}: export with the release that made them, or start this one first, which updates them`,
    );
  return { isReadOnly };
}

function laterForm(version: number): UnusableStore {
  return new UnusableStore(
    `the tables of the store are of form ${version}, and this gateway knows ${migrations.length}: a later release has updated them. To go back, export the store with that release and import it with this one`,
  );
}

/** What a database has of a store. */
interface OpenedSchema {
  /** How many migrations were made; 0 if there are no tables yet. */
  readonly version: number;
  readonly isReadOnly: boolean;
}

async function openSchema(client: ClientBase, schema: string, timeoutMs: number): Promise<OpenedSchema> {
  // The config check restricts names of schemas.
  await client.query(
    `SET search_path TO "${schema}"; SET timezone TO 'UTC'; SET client_min_messages TO warning;` +
      // Statements wait for one another, and then read what the others have written.
      ` SET default_transaction_isolation TO 'read committed'; SET statement_timeout TO ${timeoutMs};` +
      ` SET idle_in_transaction_session_timeout TO ${timeoutMs === 0 ? 0 : idleInTransactionMs}`,
  );
  const { rows } = await client.query<{ made: string | null; read_only: string }>(
    `SELECT to_regclass('"${schema}".migrations')::text AS made,
current_setting('transaction_read_only') AS read_only`,
  );
  return {
    version: rows[0]?.made == null ? 0 : await readVersion(client),
    isReadOnly: rows[0]?.read_only === 'on',
  };
}

/**
 * Bounds the wait for a server that is gone since it was connected to. Otherwise it would last as long as the system
 * keeps the connection.
 */
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

/** Executes the missing migrations in order. Other processes that need them wait meanwhile. */
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
