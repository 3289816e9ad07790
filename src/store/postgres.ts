import type { PostgresStoreSettings } from '../config/types.js';
import { mostAheadMs } from './claims.js';
import { createPostgresBudgets } from './postgres-budgets.js';
import { createPostgresLedger } from './postgres-ledger.js';
import { numberOf, PostgresLink, pageOf, type Row, sweepInSteps, textOf } from './postgres-link.js';
import { createPostgresChanges } from './postgres-notifications.js';
import { createPostgresOwned } from './postgres-owned.js';
import { isLasting } from './postgres-schema.js';
import { fromColumn, toColumn, toKey } from './postgres-text.js';
import { maxSkewMs } from './process-mark.js';
import { firstRevision } from './record-format.js';
import type { ChangeFeed, ListedRecord, ListOrder, Store, StoredRecord, WholeStore } from './store.js';

/** Connections of a process: for records, and for lines of ledgers. Budgets have one more. */
const recordConnections = 4;
const ledgerConnections = 2;

/**
 * Creates a store in PostgreSQL, shared by all gateways with the same database and schema. Times are those of the
 * server. Frequent writes have connections of their own, so that records never wait for lines of a ledger, and budgets
 * wait for neither.
 */
export function createPostgresStore(
  settings: PostgresStoreSettings,
): WholeStore & { readonly changes: ChangeFeed } {
  const { timeoutMs } = settings;
  let onUpdate = (): void => {};
  const records = new PostgresLink({
    settings,
    connections: recordConnections,
    timeoutMs,
    onUpdate: () => onUpdate(),
  });
  const lines = new PostgresLink({ settings, connections: ledgerConnections, timeoutMs });
  const money = new PostgresLink({ settings, connections: 1, timeoutMs });
  const ledger = createPostgresLedger(lines);
  const budgets = createPostgresBudgets(money);
  const owned = createPostgresOwned(records);
  const changes = createPostgresChanges(settings);
  return {
    kind: 'postgres',
    ...createRecords(records),
    claim: async (name, ttlMs) =>
      (await records.ask(statements.claim, [toKey(name), atLeastOne(ttlMs)])).length > 0,
    calls: ledger.calls,
    append: ledger.append,
    readLines: ledger.readLines,
    readSums: ledger.readSums,
    owned: owned.records,
    accounts: budgets.accounts,
    changes,
    risks: () => readRisks(records),
    size: async () => numberOf((await records.ask(sizeStatement, []))[0]?.bytes ?? 0),
    refusal(onBegin) {
      onUpdate = once(onBegin);
      return refusalOf(records);
    },
    async sweep() {
      await sweepInSteps(records, statements.sweepRecords);
      await sweepInSteps(records, statements.sweepClaims);
      await records.ask(statements.sweepShares, []);
      await budgets.sweep();
      await owned.sweep();
      await ledger.sweep();
    },
    async close() {
      budgets.close();
      await Promise.all([...[records, lines, money].map((link) => link.close()), changes.close()]);
    },
  };
}

/** Longest wait for tables that are being brought up to date. */
const updateMs = 60 * 60 * 1000;

/** Days of a ledger are tables of their own, so that their parent has no size. */
const sizeStatement = {
  name: 'size',
  text: `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
} as const;

async function refusalOf(link: PostgresLink): Promise<string | null> {
  try {
    await link.call((ask) => ask(statements.get, ['any', 'any']), updateMs / link.timeoutMs);
    return null;
  } catch (error) {
    const cause = error instanceof Error ? error.cause : error;
    return isLasting(cause) ? cause.message : null;
  }
}

/** @returns a function of which only the first call has an effect */
function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}

function createRecords(link: PostgresLink): Pick<Store, 'get' | 'create' | 'replace' | 'remove' | 'list'> {
  return {
    async get(collection, id) {
      const [row] = await link.ask(statements.get, [collection, toKey(id)]);
      return row === undefined ? null : recordOf(row);
    },
    async create(collection, id, value, ttlMs) {
      const record = [
        collection,
        toKey(id),
        toColumn(id),
        toColumn(value),
        firstRevision(),
        atLeastOne(ttlMs),
      ];
      return (await link.ask(statements.create, record)).length > 0;
    },
    async replace(collection, id, value, revision, ttlMs) {
      const change = [collection, toKey(id), toColumn(value), revision, atLeastOne(ttlMs)];
      return (await link.ask(statements.replace, change)).length > 0;
    },
    async remove(collection, id) {
      await link.ask(statements.remove, [collection, toKey(id)]);
    },
    async list(collection, limit, from, order = 'first-to-go') {
      const place = from === null ? firstPlaces[order] : readPlace(from);
      const rows = await link.ask(listStatements[order], [collection, ...place, limit + 1]);
      const { items, next } = pageOf(rows, limit, { itemOf: listedOf, placeOf });
      return { records: items, next };
    },
  };
}

function recordOf(row: Row): StoredRecord {
  return { value: fromColumn(textOf(row.value)), revision: numberOf(row.revision) };
}

function listedOf(row: Row): ListedRecord {
  return { id: fromColumn(textOf(row.id)), ...recordOf(row), leftMs: numberOf(row.left_ms) };
}

/** Position of a record in the order of a list: its expiry and its key. */
type Place = readonly [expiresAt: string, key: string];

const firstPlaces: Readonly<Record<ListOrder, Place>> = {
  'first-to-go': ['-infinity', ''],
  'last-to-go': ['infinity', ''],
};

function placeOf(row: Row): string {
  return `${textOf(row.expires_at)}|${textOf(row.key)}`;
}

function readPlace(text: string): Place {
  const bar = text.indexOf('|');
  return [text.slice(0, bar), text.slice(bar + 1)];
}

/** Converts a time to live for a statement, in milliseconds. */
function atLeastOne(ttlMs: number): number {
  return Math.ceil(Math.max(1, ttlMs));
}

const until = (parameter: string): string => `now() + milliseconds(${parameter}::double precision)`;

const statements = {
  get: {
    name: 'record_get',
    text: 'SELECT value, revision FROM records WHERE collection = $1 AND key = $2 AND expires_at > now()',
  },
  create: {
    name: 'record_create',
    text: `INSERT INTO records AS r VALUES ($1, $2, $3, $4, $5, ${until('$6')})
ON CONFLICT (collection, key) DO UPDATE
SET id = excluded.id, value = excluded.value, revision = excluded.revision, expires_at = excluded.expires_at
WHERE r.expires_at <= now() RETURNING true AS made`,
  },
  replace: {
    name: 'record_replace',
    text: `UPDATE records SET value = $3, revision = revision + 1, expires_at = ${until('$5')}
WHERE collection = $1 AND key = $2 AND revision = $4 AND expires_at > now() RETURNING true AS made`,
  },
  remove: { name: 'record_remove', text: 'DELETE FROM records WHERE collection = $1 AND key = $2' },
  claim: {
    name: 'claim',
    text: `INSERT INTO claims AS c VALUES ($1, ${until('$2')})
ON CONFLICT (key) DO UPDATE SET expires_at = excluded.expires_at
WHERE c.expires_at <= now() OR c.expires_at > excluded.expires_at + interval '${mostAheadMs} milliseconds' RETURNING true AS made`,
  },
  sweepRecords: {
    name: 'record_sweep',
    text: `DELETE FROM records WHERE (collection, key) IN
(SELECT collection, key FROM records WHERE expires_at <= now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING true AS gone`,
  },
  sweepClaims: {
    name: 'claim_sweep',
    text: `DELETE FROM claims WHERE key IN
(SELECT key FROM claims WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING true AS gone`,
  },
  sweepShares: { name: 'share_sweep', text: 'SELECT sweep_shares()' },
} as const;

const columns = `id, value, revision, key, expires_at::text AS expires_at,
(extract(epoch FROM expires_at - now()) * 1000)::bigint AS left_ms`;

const listStatements = {
  'first-to-go': {
    name: 'record_list',
    text: `SELECT ${columns} FROM records WHERE collection = $1 AND expires_at > now()
AND (expires_at, key) > ($2, $3) ORDER BY records.expires_at, key LIMIT $4`,
  },
  'last-to-go': {
    name: 'record_list_back',
    text: `SELECT ${columns} FROM records WHERE collection = $1 AND expires_at > now()
AND (expires_at, key) < ($2, $3) ORDER BY records.expires_at DESC, key DESC LIMIT $4`,
  },
} as const;

/** If a standby is further behind than this, a failover would lose more than moments. */
const mostLagSeconds = 10;

/**
 * Reads settings of the server by which a crash or a failover would lose more than what its log has lost, and what else
 * will keep the store from being written. https://www.postgresql.org/docs/current/runtime-config-wal.html
 * @returns a sentence for each, without a full stop
 */
async function readRisks(link: PostgresLink): Promise<readonly string[]> {
  const [row] = await link.ask(statement, []);
  if (row === undefined) return [];
  const risks: string[] = [];
  for (const name of ['fsync', 'full_page_writes'] as const) {
    if (textOf(row[name]) === 'off')
      risks.push(`${name} is off: a crash of the machine may damage the whole database`);
  }
  if (textOf(row.synchronous_commit) === 'off') {
    risks.push(
      'synchronous_commit is off: a crash loses changes of the last moments that were told to be kept',
    );
  }
  if (row.is_standby === true) risks.push('the server is a standby, which takes no changes');
  const lag = row.lag_seconds === null ? 0 : numberOf(row.lag_seconds);
  if (lag > mostLagSeconds) {
    risks.push(`a standby is ${lag} s behind: a change to it loses what was written in that time`);
  }
  if (row.is_owner === false) {
    risks.push(
      'the user of the store does not own its tables: from the next midnight (UTC) on no usage can be written, since each day has a table of its own; make the user their owner, or a member of the role that is',
    );
  }
  const skewMs = Math.abs(Date.now() - numberOf(row.now_ms));
  if (skewMs > maxSkewMs) {
    risks.push(
      `the clock of this host is ${Math.round(skewMs / 1000)} s off that of the server: calls are recorded at the wrong time`,
    );
  }
  return risks;
}

const statement = {
  name: 'risks',
  text: `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS is_standby,
(SELECT ceil(extract(epoch FROM max(replay_lag)))::bigint FROM pg_stat_replication) AS lag_seconds,
(SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('calls')) AS is_owner,
(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms`,
} as const;
