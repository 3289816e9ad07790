import type { Client } from 'pg';
import { eventually } from './eventually.js';
import type { PostgresServer } from './postgres.js';
import type { Relay } from './relay.js';

/** Faults of a database, or between it and its gateways. */
interface DatabaseFault {
  begin(): Promise<void>;
  end(): Promise<void>;
}

export type DatabaseFaultName = keyof typeof databaseFaults;

/** The database, and the connection to it that all gateways use. */
export interface FaultyDatabase {
  readonly server: PostgresServer;
  readonly relay: Relay;
}

/** Few enough for a crowd to take all of them at once, and more than two gateways need. */
const connectionsOfServer = 60;
/** No smaller than a file of the server's log, without which the server would stop: `--wal-segsize=1`. */
const fullBytes = 1_100_000;
/** Rows that take up more than that. */
const fillers = 10_000;

/** Settings of a server for these faults. */
export const faultySettings = [
  `max_connections=${connectionsOfServer}`,
  'superuser_reserved_connections=0',
  'idle_in_transaction_session_timeout=60s',
];

export const databaseFaults = {
  /** The server is killed, and restarted when the fault ends. */
  killed: ({ server }: FaultyDatabase): DatabaseFault => ({
    begin: () => server.crash(),
    end: () => server.restart(),
  }),
  /** No file of it can grow, as if the disk were full. Existing data can still be changed in place. */
  full: ({ server }: FaultyDatabase): DatabaseFault => ({
    async begin() {
      // The table of calls is then as large as a file may be, and none of its pages is known to have room.
      const isBegun = () => server.query('SELECT count(*) > 0 FROM gateway.calls') === 't';
      await eventually(isBegun, { everyMs: 50 });
      const part = server.query('SELECT tableoid::regclass FROM gateway.calls LIMIT 1');
      server.query(`ALTER TABLE ${part} SET (autovacuum_enabled = off)`);
      server.query(
        `INSERT INTO ${part} SELECT c.* FROM (SELECT * FROM ${part} LIMIT 1) c, generate_series(1, ${fillers})`,
      );
      server.limitFiles(fullBytes);
      server.query(`DELETE FROM ${part} p USING (SELECT request_id, min(ctid) AS first FROM ${part} GROUP BY 1 HAVING count(*) >= ${fillers}) f
        WHERE p.request_id = f.request_id AND p.ctid > f.first`);
    },
    async end() {
      server.limitFiles(null);
    },
  }),
  /** Other clients take every connection, including those of the gateways. */
  crowded: ({ server }: FaultyDatabase): DatabaseFault => {
    const crowd: Client[] = [];
    return {
      begin: () => takeAll(server, crowd),
      async end() {
        await Promise.all(crowd.map((client) => client.end()));
      },
    };
  },
  /** Bytes in both directions are dropped without notice. */
  cut: ({ relay }: FaultyDatabase): DatabaseFault => ({
    async begin() {
      relay.cut();
    },
    async end() {
      relay.mend();
    },
  }),
} as const;

async function takeAll({ url }: PostgresServer, crowd: Client[]): Promise<void> {
  const { default: pg } = await import('pg');
  const join = async (): Promise<boolean> => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    try {
      await client.connect();
      crowd.push(client);
      return true;
    } catch {
      return false;
    }
  };
  await eventually(async () => {
    while (await join());
    const [first] = crowd;
    if (first === undefined) return false;
    // Each connection that is ended here leaves a place that the gateways and the crowd compete for.
    const ended = await first.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'model-gateway'",
    );
    return ended.rowCount === 0 && !(await join());
  });
}
