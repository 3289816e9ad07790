import type { ClientBase, ClientConfig, Connection, Pool, PoolClient, Submittable } from 'pg';
import type { PostgresPlace, PostgresStoreSettings } from '../config/types.js';
import { isLasting, prepareConnection, ReadOnlyServer, UnusableStore } from './postgres-schema.js';
import { backOffBefore, storeClosed, storeUnavailable } from './store.js';

/** A prepared statement. Its name is unique. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A row by column names. `bigint` is text; JSON is parsed. */
export type Row = Readonly<Record<string, unknown>>;

/** Has the server execute a statement. */
type AskPostgres = (statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

/** Sends rows to the server: a `COPY … FROM STDIN`, and chunks of whole rows in its text format. */
type CopyToPostgres = (text: string, chunks: readonly Uint8Array[]) => Promise<void>;

type PostgresWork<T> = (ask: AskPostgres, copy: CopyToPostgres) => Promise<T>;

interface PostgresLinkOptions {
  readonly settings: PostgresStoreSettings;
  /** Most concurrent connections. They are opened when needed. */
  readonly connections: number;
  /** Longest duration of a call, in milliseconds. */
  readonly timeoutMs: number;
  /** Called before existing tables are updated, which every new connection has to wait for. */
  onUpdate?(): void;
}

/** Most calls in flight over one link. */
const mostCalls = 4096;
/** A connection that was unused for this long is closed. */
const idleMs = 60_000;
/** The system probes a connection on which it has received nothing for this long. */
const keepAliveMs = 10_000;

/** Returns the places of the server in the settings, in the order in which they are tried. */
function placesOf({ host, port, others }: PostgresStoreSettings): readonly PostgresPlace[] {
  return [{ host, port }, ...others];
}

/**
 * Returns the driver's config for a connection.
 * @param timeoutMs longest wait for a connection
 * @param tries how many tries have failed. Each is directed to the next place
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
    // Without a password the driver would look into files and the environment.
    password: password ?? '',
    ssl: tls === 'off' ? false : { rejectUnauthorized: tls === 'verified' },
    application_name: 'model-gateway',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    connectionTimeoutMillis: timeoutMs,
  };
}

/**
 * Calls to PostgreSQL with a bound on their duration, over a bounded pool of connections. Nothing is connected before
 * the first call. While the server cannot be reached, calls are refused immediately, except for one attempt after each
 * back-off, so that a recovering server is not overloaded. A connection on which anything failed is closed, since the
 * system may take a quarter of an hour to notice that a connection is dead.
 */
export class PostgresLink {
  readonly #options: PostgresLinkOptions;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #prepared = new WeakSet<ClientBase>();
  #pool: Promise<Pool> | null = null;
  /** The pool that was found to have sessions of its own, without a pooler that shares them. */
  #direct: Promise<Pool> | null = null;
  #failure: unknown = null;
  /** Failures since a server that accepts changes was last reached. */
  #failures = 0;
  /** Failed connections since the start. They determine the place to which the pool connects. */
  #tries = 0;
  /** Milliseconds of the monotonic clock. */
  #refusedUntil = 0;
  #closing: Promise<void> | null = null;

  constructor(options: PostgresLinkOptions) {
    this.#options = options;
  }

  /** Longest duration of a call, in milliseconds, unless it may take longer. */
  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  /** Shorthand of `call` for a single statement. */
  readonly ask: AskPostgres = (statement, values) => this.call((ask) => ask(statement, values));

  /**
   * Runs a function with a connection of its own.
   * @param times multiple of the configured timeout that the function may take. The server limits each statement on its
   * own
   * @throws {GatewayError} of kind `store_unavailable` if it fails or exceeds its time
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

  /** Waits for the calls in flight, then closes the connections. */
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
      const end = (): void => {
        turn.end();
        reject(storeUnavailable(new Error(`PostgreSQL gave no answer within ${timeoutMs} ms`)));
      };
      // After a blocked event loop, the answer may be waiting in the kernel. It is read before the immediate runs.
      const timer = setTimeout(() => setImmediate(end), timeoutMs);
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

  /** Returns a usable connection from the current place, or from the next one that has one. */
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

  /** @param opened the pool of the connection. Other calls may use another pool by now */
  async #prepare(opened: Promise<Pool>, client: PoolClient): Promise<PoolClient> {
    const { settings, timeoutMs, onUpdate } = this.#options;
    try {
      if (!this.#prepared.has(client)) {
        await this.#refusePooler(opened, client);
        await prepareConnection(client, settings, timeoutMs, onUpdate);
      }
      this.#prepared.add(client);
      this.#failures = 0;
      return client;
    } catch (error) {
      client.release(true);
      // Any other error, such as the timeout of a busy server, ends this connection alone.
      if (error instanceof ReadOnlyServer || isLasting(error)) this.#leave(opened, error);
      throw error;
    }
  }

  /** Once per pool, since what is between gateway and server does not change from one connection to the next. */
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
      // Otherwise other calls may only have kept all connections busy.
      if (pool.totalCount < this.#options.connections) this.#leave(opened, error);
      throw error;
    }
  }

  /**
   * Switches to the next place, after a back-off if all places have failed. Calls in flight at the former place finish
   * there.
   */
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

  /** The package is loaded here, so that other stores do not pay for it. */
  async #open(): Promise<Pool> {
    const { settings, connections, timeoutMs } = this.#options;
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({
      ...clientConfig(settings, timeoutMs, this.#tries),
      max: connections,
      idleTimeoutMillis: idleMs,
      allowExitOnIdle: true,
    });
    // Errors of unused connections, which the next call replaces. While a connection is in use the pool does not
    // listen, and its call is notified by its promise.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  }
}

/**
 * The use of a connection by one call. The connection is released once: at the end of the call, or when its time is
 * over.
 */
class Turn {
  isOver = false;
  #client: PoolClient | null = null;

  begin(client: PoolClient): void {
    this.#client = client;
  }

  /** @param isBroken whether to close the connection, and so end what the server does for it */
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
 * Makes a page of a statement's rows, of which one more than the page's limit was requested.
 * @param placeOf returns the position of a row, after which the next page begins
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

/**
 * Returns a text of a row.
 * @throws Error if it is not a text
 */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new Error('a column of the store has no text');
}

/**
 * Returns a whole number of a row.
 * @throws Error if it is not a whole number
 */
export function numberOf(value: unknown): number {
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new Error('a column of the store has no number');
}

/** Methods of the driver's connection during `COPY`, which are missing in its types. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
}

/**
 * A `COPY … FROM STDIN` as a query of the driver, which does not provide one.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY
 */
class CopyQuery implements Submittable {
  /** Resolves when the server has stored all rows. Otherwise rejects with the server's error. */
  readonly done: Promise<void>;
  readonly #text: string;
  readonly #chunks: readonly Uint8Array[];
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};

  /** @param chunks whole rows in the text format of `COPY`, each with its line end */
  constructor(text: string, chunks: readonly Uint8Array[]) {
    this.#text = text;
    this.#chunks = chunks;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: Connection): void {
    connection.query(this.#text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    this.#send(connection, 0);
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    this.#resolve();
  }

  handleCommandComplete(): void {}

  /** Sends one chunk per turn of the event loop. Many at once would block a process that serves requests. */
  #send(connection: CopyConnection, index: number): void {
    const chunk = this.#chunks[index];
    if (chunk === undefined) {
      connection.endCopyFrom();
      return;
    }
    connection.sendCopyFromChunk(chunk);
    setImmediate(() => this.#send(connection, index + 1));
  }
}

/** Most checks of a connection. More than one, since other clients of the pooler may have been given the connection meanwhile. */
const mostTries = 10;

/**
 * Refuses a pooler that gives each transaction a connection of its own. Behind such a pooler, the next statement may
 * run in another session, with another schema, other timeouts and prepared statements, and without `LISTEN`. Tables
 * could be created in the wrong schema.
 * @param client a new connection
 * @param connect opens another connection to the same place
 * @throws {UnusableStore} that says what to change
 */
async function refuseSharedSessions(
  client: ClientBase,
  connect: () => Promise<ClientBase & { end(): Promise<void> }>,
): Promise<void> {
  const own = await backendOf(client);
  // A pooler reports a process id of its own, whereas a server reports that of the process that executes the
  // statements.
  if (own === Reflect.get(client, 'processID')) return;
  const other = await connect();
  try {
    for (let tries = 0; tries < mostTries; tries++) {
      // A pooler reuses the connection that was freed last, or the first of many.
      const before = await backendOf(client);
      await other.query('BEGIN');
      const isShared =
        before !== own || (await backendOf(other)) === own || (await backendOf(client)) !== own;
      await other.query('ROLLBACK');
      if (isShared) throw new UnusableStore(refusal);
    }
  } finally {
    await other.end();
  }
}

const refusal =
  'the pooler in front of PostgreSQL gives each transaction another connection: it has to keep one for each session ' +
  '(pool_mode = session with PgBouncer), or the URL of the store has to name the server itself';

async function backendOf(client: ClientBase): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}

/** Most rows that one step of a sweep removes. */
const mostSwept = 1000;

/**
 * Removes rows in steps, so that each step is done in time and other calls run in between.
 * @param statement removes at most as many rows as its parameter says, and returns one row for each
 */
export async function sweepInSteps(link: PostgresLink, statement: Statement): Promise<void> {
  let swept = mostSwept;
  while (swept >= mostSwept) swept = (await link.ask(statement, [mostSwept])).length;
}
