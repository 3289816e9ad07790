import type { Test } from 'tap';
import { PostgresLink } from '../../../src/store/postgres-link.js';
import { createPostgresShares } from '../../../src/store/postgres-shares.js';
import type { PostgresServer } from '../../support/postgres.js';
import type { FleetStore } from './fleet.js';

/** Where the tables of the fleet are. */
const schema = 'gateway';

/** What the server takes for its clock in place of its own, as long as it counts shares. */
const ownClock = `
CREATE UNLOGGED TABLE ${schema}.fleet_clock (now_ms double precision NOT NULL);
INSERT INTO ${schema}.fleet_clock VALUES (0);
CREATE FUNCTION ${schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  'SELECT to_timestamp(now_ms / 1000) FROM ${schema}.fleet_clock';
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT p.oid::regprocedure FROM pg_proc p
    WHERE p.proname = 'exchange_shares' AND p.pronamespace = '${schema}'::regnamespace
  LOOP EXECUTE format('ALTER FUNCTION %s SET search_path TO ${schema}, pg_catalog', f); END LOOP;
END $$;
`;

const setClock = { name: 'set_fleet_clock', text: 'UPDATE fleet_clock SET now_ms = $1' };

/**
 * The shares of a real PostgreSQL, over a connection of each host, by the clock of the fleet.
 * @param hosts how many there are
 */
export async function openClockedStore(
  t: Pick<Test, 'teardown'>,
  server: PostgresServer,
  hosts: number,
): Promise<FleetStore> {
  const settings = {
    kind: 'postgres',
    host: '127.0.0.1',
    port: server.port,
    others: [],
    database: 'postgres',
    username: 'postgres',
    password: null,
    tls: 'off',
    schema,
    timeoutMs: 1000,
    taskDays: 1,
  } as const;
  const stores = Array.from({ length: hosts }, () => createPostgresShares(settings));
  const clock = new PostgresLink({ settings, connections: 1, timeoutMs: 10_000 });
  t.teardown(() => Promise.all([clock.close(), ...stores.map((store) => store.close())]));
  // The first exchange makes the tables.
  await stores[0]?.exchange({ host: 'probe', number: 1, leaseMs: 1, pools: [] });
  server.query(ownClock);
  return {
    async setClock(now) {
      await clock.ask(setClock, [now]);
    },
    async exchange(host, statement) {
      // Of one that is not answered in time nobody knows what became of it.
      return (await stores[host]?.exchange(statement).catch(() => null)) ?? null;
    },
  };
}
