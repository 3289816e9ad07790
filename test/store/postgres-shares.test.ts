import t, { type Test, test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { createShareStore } from '../../src/store/create.js';
import { createPostgresStore } from '../../src/store/postgres.js';
import { createPostgresShares } from '../../src/store/postgres-shares.js';
import type { HostStatement, ShareStore } from '../../src/store/shares.js';
import { testShares } from '../suites/shares.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { noPostgres, startPostgres } from '../support/postgres.js';
import { random } from '../support/seed.js';

const server = await startPostgres();
t.teardown(() => server?.stop());

const skip = server === null && noPostgres;
const settings = postgresSettings(server?.port ?? 0);
let count = 0;

/** Shares of which nobody else knows, which can be reached. */
async function openShares(t: Pick<Test, 'teardown'>, schema = `test_${++count}`): Promise<ShareStore> {
  const shares = createPostgresShares({ ...settings, schema });
  t.teardown(() => shares.close());
  await connected(shares);
  return shares;
}

testShares('postgres', {
  skip,
  async open(t: Test) {
    const shares = await openShares(t);
    return {
      exchange: (statement) =>
        shares.exchange(statement).catch((error: unknown) => {
          if (/later statement/.test(String((error as Error).cause))) return null;
          throw error;
        }),
      pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    };
  },
});

/** The first connection may take longer than a statement may. */
async function connected(shares: ShareStore): Promise<void> {
  let number = 0;
  await eventually(async () => {
    number += 1;
    const probe = shares.exchange({ host: 'probe', number, leaseMs: 0, pools: [] });
    return probe.then(
      () => true,
      () => false,
    );
  });
}

const empty: HostStatement = { host: 'a', number: 1, leaseMs: 1000, pools: [] };
const asked = { limit: 1000, held: 0, need: 10, least: 1, want: 10, blockMs: 60_000 };

test('hosts that speak at once of the same pools are never given more than there is', { skip }, async (t) => {
  const schema = 'at_once';
  const hosts = await Promise.all(['a', 'b', 'c', 'd'].map(() => openShares(t, schema)));
  const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
  const held = hosts.map(() => new Map<string, number>());
  for (let number = 1; number <= 30; number++) {
    await Promise.all(
      hosts.map(async (shares, index) => {
        const own = held[index] as Map<string, number>;
        // Each in an order of its own.
        const pools = names
          .map((pool) => ({ ...asked, pool, held: own.get(pool) ?? 0, order: random() }))
          .sort((one, other) => one.order - other.order);
        const answer = await shares.exchange({ host: `h${index}`, number, leaseMs: 60_000, pools });
        for (const [at, { pool }] of pools.entries())
          own.set(pool, (own.get(pool) ?? 0) + (answer.pools[at]?.granted ?? 0));
      }),
    );
    for (const pool of names) {
      const all = held.reduce((sum, own) => sum + (own.get(pool) ?? 0), 0);
      if (all > asked.limit) t.fail(`${all} units of ${pool}`);
    }
  }
  for (const pool of names)
    t.equal(
      held.reduce((sum, own) => sum + (own.get(pool) ?? 0), 0),
      asked.limit,
    );
});

test('what is not different is not written', { skip }, async (t) => {
  const schema = 'same';
  const shares = await openShares(t, schema);
  const pools = ['k', 'l'].map((pool) => ({ ...asked, pool }));
  await shares.exchange({ ...empty, pools });
  const rows = () => server?.query(`SELECT string_agg(xmin::text, ' ' ORDER BY pool) FROM ${schema}.shares`);
  const before = rows();
  const restated = pools.map((pool) => ({ ...pool, held: 10, need: 0, least: 0, want: 0 }));
  await shares.exchange({ ...empty, number: 2, pools: restated });
  t.equal(rows(), before);
});

test('a sweep forgets hosts that are gone for long, and what only they had', { skip }, async (t) => {
  const schema = 'swept';
  const shares = await openShares(t, schema);
  const store = createPostgresStore({ ...settings, schema });
  t.teardown(() => store.close());
  await shares.exchange({ ...empty, pools: [{ ...asked, pool: 'old' }] });
  await shares.exchange({ ...empty, host: 'b', pools: [{ ...asked, pool: 'new' }] });
  const gone = "deadline = now() - interval '11 minutes'";
  server?.query(`UPDATE ${schema}.share_hosts SET ${gone} WHERE host = 'a'`);
  await store.sweep();
  const held = (table: string, column: string) => server?.query(`SELECT ${column} FROM ${schema}.${table}`);
  t.equal(held('share_pools', 'pool'), 'new');
  t.equal(held('shares', 'host'), 'b');
  t.notMatch(held('share_hosts', 'host'), /^a$/m);
});

test('a server that is not there is told as such, at once or within a second', async (t) => {
  const shares = createPostgresShares({ ...postgresSettings(1), timeoutMs: 60_000 });
  t.teardown(() => shares.close());
  const failure = await shares.exchange(empty).catch((error: unknown) => error);
  t.ok(failure instanceof GatewayError && failure.kind === 'store_unavailable', String(failure));
});

test('only a store that hosts share has shares', async (t) => {
  t.equal(createShareStore({ kind: 'embedded', path: '/nowhere', taskDays: 1 }), null);
});
