import type { ClientBase, ClientConfig, Pool, PoolClient } from 'pg';
import type { PostgresPlace, PostgresStoreSettings } from '../config/types.js';
import { backOffBefore } from './back-off.js';
import { CopyQuery } from './postgres-copy.js';
import { refuseSharedSessions } from './postgres-pooler.js';
import { prepareConnection, ReadOnlyServer } from './postgres-schema.js';
import { storeClosed, storeUnavailable } from './unavailable.js';

/** A statement that the server is to remember under its name, which no other statement has. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A row by the names of its columns. `bigint` comes as text, JSON as what it says. */
export type Row = Readonly<Record<string, unknown>>;

/** Has the server carry out a statement. */
type AskPostgres = (statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

/** Has the server take rows: a `COPY … FROM STDIN`, and chunks of whole rows in its text format. */
type CopyToPostgres = (text: string, chunks: readonly Uint8Array[]) => Promise<void>;

type PostgresWork<T> = (ask: AskPostgres, copy: CopyToPostgres) => Promise<T>;

interface PostgresLinkOptions {
  readonly settings: PostgresStoreSettings;
  /** Connections at a time, which are made when they are needed. */
  readonly connections: number;
  /** Longest wait of a call, in milliseconds. */
  readonly timeoutMs: number;
}

/** Calls under way over one link. */
const mostCalls = 4096;
/** A connection that nobody has used for so long ends. */
const idleMs = 60_000;
/** The system asks whether the other end is there when nothing was heard of it for so long. */
const keepAliveMs = 10_000;

/** Where a server of the settings may be, in the order in which they are tried. */
function placesOf({ host, port, others }: PostgresStoreSettings): readonly PostgresPlace[] {
  return [{ host, port }, ...others];
}

/**
 * What the driver connects with.
 * @param timeoutMs longest wait for a connection
 * @param tries how many were in vain: each of them goes to the next place
 */
export function clientConfig(settings: PostgresStoreSettings, timeoutMs: number, tries = 0): ClientConfig {
  const places = placesOf(settings);
  const { host, port } = places[tries % places.length] ?? settings;
  const { database, username, password, tls } = settings;
  return {
    host,
    port,
    database,
    user: username,
    // Without one it would look into files and the environment.
    password: password ?? '',
    ssl: tls === 'off' ? false : { rejectUnauthorized: tls === 'verified' },
    application_name: 'model-gateway',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    connectionTimeoutMillis: timeoutMs,
  };
}

/**
 * Calls to PostgreSQL that always end in time. A pool of connections with bounds; nothing is connected before the
 * first call. While the server cannot be reached, calls are refused at once but for one attempt after each pause,
 * so that a server that comes back is not stormed. A connection on which anything went wrong ends: the system
 * itself may take a quarter of an hour to notice that one is dead.
 */
export class PostgresLink {
  readonly #options: PostgresLinkOptions;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #prepared = new WeakSet<ClientBase>();
  #pool: Promise<Pool> | null = null;
  /** The pool of which it is known that nothing shares its sessions. */
  #direct: Promise<Pool> | null = null;
  #failure: unknown = null;
  /** Since a server was reached that takes changes. */
  #failures = 0;
  /** Connections that were in vain since the start, by which the place is known where the pool connects to. */
  #tries = 0;
  /** Milliseconds of the monotonic clock. */
  #refusedUntil = 0;
  #closing: Promise<void> | null = null;

  constructor(options: PostgresLinkOptions) {
    this.#options = options;
  }

  /** Longest wait of a call, in milliseconds, unless it may take longer. */
  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  /** `call` for a single statement. */
  readonly ask: AskPostgres = (statement, values) => this.call((ask) => ask(statement, values));

  /**
   * Does a piece of work with a connection that nobody else uses meanwhile.
   * @param times how often the time of the settings the work may take; the server bounds each statement by itself
   * @throws {GatewayError} of kind `store_unavailable` when it fails, or is not done in time
   */
  async call<T>(work: PostgresWork<T>, times = 1): Promise<T> {
    if (this.#closing !== null) throw storeClosed();
    if (this.#calls.size >= mostCalls) {
      throw storeUnavailable(new Error(`${mostCalls} calls of the store are under way`));
    }
    if (performance.now() < this.#refusedUntil) throw storeUnavailable(this.#failure);
    const call = this.#run(work, times * this.timeoutMs);
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** Lets the calls under way end, and then the connections. */
  close(): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#calls).then(async () => {
      const pool = await this.#pool;
      await pool?.end();
    });
    return this.#closing;
  }

  #run<T>(work: PostgresWork<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const turn = new Turn();
      const timer = setTimeout(() => {
        turn.end();
        reject(storeUnavailable(new Error(`PostgreSQL gave no answer within ${timeoutMs} ms`)));
      }, timeoutMs);
      this.#work(turn, work)
        .then(resolve, (cause: unknown) => reject(storeUnavailable(cause)))
        .finally(() => clearTimeout(timer));
    });
  }

  async #work<T>(turn: Turn, work: PostgresWork<T>): Promise<T> {
    const client = await this.#ready(turn);
    if (turn.isOver) {
      client.release();
      throw new Error('the time of the call is over');
    }
    turn.begin(client);
    try {
      const ask: AskPostgres = async (statement, values) => {
        if (turn.isOver) throw new Error('the time of the call is over');
        const { rows } = await client.query<Row>({ ...statement, values: [...values] });
        return rows;
      };
      const copy: CopyToPostgres = (text, chunks) => {
        if (turn.isOver) throw new Error('the time of the call is over');
        return client.query(new CopyQuery(text, chunks)).done;
      };
      const result = await work(ask, copy);
      turn.release(false);
      return result;
    } catch (error) {
      turn.release(true);
      throw error;
    }
  }

  /** A connection that can be used, from the first place on that has one. */
  async #ready(turn: Turn): Promise<PoolClient> {
    for (let left = placesOf(this.#options.settings).length - 1; ; left -= 1) {
      this.#pool ??= this.#open();
      const opened = this.#pool;
      try {
        return await this.#prepare(opened, await this.#connect(opened));
      } catch (error) {
        if (left === 0 || turn.isOver || this.#pool === opened) throw error;
      }
    }
  }

  /** @param opened the pool that the connection is of: by now others may have gone on to another */
  async #prepare(opened: Promise<Pool>, client: PoolClient): Promise<PoolClient> {
    try {
      if (!this.#prepared.has(client)) {
        await this.#refusePooler(opened, client);
        await prepareConnection(client, this.#options.settings, this.#options.timeoutMs);
      }
      this.#prepared.add(client);
      this.#failures = 0;
      return client;
    } catch (error) {
      client.release(true);
      if (error instanceof ReadOnlyServer) this.#leave(opened, error);
      throw error;
    }
  }

  /** Once for each pool: what is between the two does not change with each connection. */
  async #refusePooler(opened: Promise<Pool>, client: PoolClient): Promise<void> {
    if (this.#direct === opened) return;
    const { settings, timeoutMs } = this.#options;
    const { default: pg } = await import('pg');
    await refuseSharedSessions(client, async () => {
      const bounds = { query_timeout: timeoutMs };
      const other = new pg.Client({ ...clientConfig(settings, timeoutMs, this.#tries), ...bounds });
      other.on('error', () => {});
      await other.connect();
      return other;
    });
    this.#direct = opened;
  }

  async #connect(opened: Promise<Pool>): Promise<PoolClient> {
    const pool = await opened;
    try {
      return await pool.connect();
    } catch (error) {
      // Others may only have kept all connections busy.
      if (pool.totalCount < this.#options.connections) this.#leave(opened, error);
      throw error;
    }
  }

  /** Goes on to the next place, after a back-off where all were in vain. What goes on at the one before ends there. */
  #leave(opened: Promise<Pool>, failure: unknown): void {
    if (this.#pool !== opened) return;
    const places = placesOf(this.#options.settings).length;
    this.#failure = failure;
    this.#failures += 1;
    if (this.#failures % places === 0)
      this.#refusedUntil = performance.now() + backOffBefore(this.#failures / places - 1);
    if (places === 1) return;
    this.#tries += 1;
    this.#pool = null;
    opened.then((pool) => pool.end()).catch(() => undefined);
  }

  /** The package is loaded here, so that nobody pays for it who has no such store. */
  async #open(): Promise<Pool> {
    const { settings, connections, timeoutMs } = this.#options;
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({
      ...clientConfig(settings, timeoutMs, this.#tries),
      max: connections,
      idleTimeoutMillis: idleMs,
      allowExitOnIdle: true,
    });
    // Of connections that nobody uses: the next call makes another. While one is in use the pool does not listen, and
    // whoever waits for an answer is told by its promise.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  }
}

/** The use of a connection by one call, which gives it back once: when it is done, or when its time is over. */
class Turn {
  isOver = false;
  #client: PoolClient | null = null;

  begin(client: PoolClient): void {
    this.#client = client;
  }

  /** @param isBroken the connection ends, and whatever the server does for it */
  release(isBroken: boolean): void {
    this.#client?.release(isBroken);
    this.#client = null;
  }

  end(): void {
    this.isOver = true;
    this.release(true);
  }
}

/**
 * A page of what a statement gave that was asked for one row more than a page has.
 * @param placeOf a row, behind which the next page begins
 */
export function pageOf<Item>(
  rows: readonly Row[],
  limit: number,
  { itemOf, placeOf }: { itemOf(row: Row): Item; placeOf(row: Row): string },
): { readonly items: readonly Item[]; readonly next: string | null } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last !== undefined ? placeOf(last) : null;
  return { items: page.map(itemOf), next };
}

/** A text of a row. @throws Error where there is none */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new Error('a column of the store has no text');
}

/** A whole number of a row. @throws Error where there is none */
export function numberOf(value: unknown): number {
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new Error('a column of the store has no number');
}
