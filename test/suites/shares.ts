import { type Test, test } from 'tap';
import type { HostAnswer, HostStatement, PoolStatement } from '../../src/store/shares.js';

interface SharesSuite {
  /** Why the tests cannot run, or false. */
  readonly skip: string | false;
  /** A store for one test, which can be reached. */
  open(t: Test): Promise<SharesUnderTest>;
}

interface SharesUnderTest {
  /** @returns null if a later statement came first */
  exchange(statement: HostStatement): Promise<HostAnswer | null>;
  /** Waits this many milliseconds on the clock of the store, or a little longer. */
  pass(ms: number): Promise<void>;
}

const leaseMs = 1500;
const blockMs = 3000;

/** Registers the tests that every store of shares passes. */
export function testShares(name: string, { skip, open }: SharesSuite): void {
  const sharesTest = (title: string, body: (t: Test, say: Say, store: SharesUnderTest) => Promise<void>) =>
    void test(`${name}: ${title}`, { skip }, async (t) => {
      const store = await open(t);
      await body(t, sayer(store), store);
    });

  sharesTest('a need is met as long as there are units, and no further', async (t, say) => {
    t.match(await say('a', { need: 6 }), { pools: [{ granted: 6, left: 4 }] });
    t.match(await say('b', { need: 6 }), { pools: [{ granted: 4, left: 0 }] });
    t.match(await say('b', { held: 4, need: 1 }), { pools: [{ granted: 0, left: 0 }] });
  });

  sharesTest('what would help nobody is not granted', async (t, say) => {
    await say('a', { need: 6 });
    t.match(await say('b', { need: 8, least: 5 }), { pools: [{ granted: 0, left: 4 }] });
    t.match(await say('b', { need: 8, least: 4 }), { pools: [{ granted: 4, left: 0 }] });
  });

  sharesTest('what is wanted beyond the need is granted from plenty alone', async (t, say) => {
    t.match(await say('a', { limit: 100, need: 1, want: 90 }), { pools: [{ granted: 50, left: 50 }] });
    t.match(await say('b', { limit: 100, need: 1, want: 90 }), { pools: [{ granted: 12, left: 38 }] });
    t.match(await say('b', { limit: 100, held: 12, need: 1, want: 3 }), { pools: [{ granted: 3 }] });
  });

  sharesTest('a host has what it says, whatever was granted before', async (t, say) => {
    await say('a', { need: 10 });
    // The answer was lost.
    t.match(await say('a', { held: 2 }), { pools: [{ granted: 0, left: 8 }] });
    t.match(await say('b', { need: 8 }), { pools: [{ granted: 8, left: 0 }] });
    t.match(await say('a', { held: 0 }), { pools: [{ left: 2 }] });
  });

  sharesTest('a statement that comes late changes nothing', async (t, say) => {
    await say('a', { held: 3 }, 7);
    t.equal(await say('a', { held: 9, need: 1 }, 7), null);
    t.equal(await say('a', { held: 9, need: 1 }, 3), null);
    t.match(await say('b', { need: 1 }), { pools: [{ left: 6 }] });
    t.match(await say('a', { held: 3 }, 8), { seen: 7 });
  });

  sharesTest('where hosts have more than the limit, each is told by how much', async (t, say) => {
    await say('a', { limit: 20, need: 20 });
    t.match(await say('b', { held: 3, need: 1 }), { pools: [{ granted: 0, left: -13 }] });
    t.match(await say('a', { held: 20 }), { pools: [{ left: -13 }], wanted: ['p'] });
    t.match(await say('a', { held: 7 }), { pools: [{ left: 0 }] });
  });

  sharesTest('other hosts hear of a wish, for a while', async (t, say, store) => {
    await say('a', { need: 10 });
    t.match(await say('b', { need: 1 }), { wanted: [] });
    t.strictSame((await say('a', { held: 10 }))?.wanted, ['p']);
    t.strictSame((await say('b', {}))?.wanted, []);
    await store.pass(1100);
    t.strictSame((await say('a', { held: 10 }))?.wanted, []);
  });

  sharesTest(
    'a host that is not heard of loses its share, but not before it is blocked no more',
    async (t, say, store) => {
      await say('a', { need: 7 });
      await store.pass(leaseMs + 20);
      t.match(await say('b', { need: 10 }), { pools: [{ granted: 3 }] });
      await store.pass(blockMs);
      t.match(await say('b', { held: 3, need: 7 }), { pools: [{ granted: 7, left: 0 }] });
      t.match(await say('a', { held: 0, need: 1 }), { seen: 1, pools: [{ granted: 0, left: 0 }] });
    },
  );

  sharesTest('a host that speaks of other pools is heard of', async (t, say, store) => {
    await say('a', { need: 7 });
    for (let i = 0; i < 8; i++) {
      await store.pass(leaseMs / 5);
      await say('a', { pool: 'other', need: 1 });
    }
    t.match(await say('b', { need: 10, blockMs: 0 }), { pools: [{ granted: 3 }] });
    await store.pass(leaseMs + 20);
    t.match(await say('b', { need: 10, blockMs: 0 }), { pools: [{ granted: 10 }] });
  });

  sharesTest('several pools are stated at once, and large amounts stay exact', async (t, _say, store) => {
    const pools = Array.from({ length: 150 }, (_, index) =>
      stated({ pool: `p:${index} ü`, limit: 9_000_000_000_001, need: index + 1 }),
    );
    const all = await store.exchange({ host: 'a', number: 1, leaseMs, pools });
    t.strictSame(
      all?.pools,
      pools.map(({ limit, need }) => ({ granted: need, left: limit - need })),
    );
    const held = 9_000_000_000_000;
    const large = stated({ pool: 'p:0 ü', limit: held + 1, held });
    t.match(await store.exchange({ host: 'b', number: 1, leaseMs, pools: [large] }), {
      pools: [{ left: 0 }],
    });
    t.match(await store.exchange({ host: 'a', number: 2, leaseMs, pools: [] }), { seen: 1, pools: [] });
  });
}

/** Sends a statement about the pool `p`, with the host's next number by default. */
type Say = (host: string, pool: Partial<PoolStatement>, number?: number) => Promise<HostAnswer | null>;

function sayer(store: SharesUnderTest): Say {
  const numbers = new Map<string, number>();
  return (host, pool, number = (numbers.get(host) ?? 0) + 1) => {
    numbers.set(host, number);
    return store.exchange({ host, number, leaseMs, pools: [stated(pool)] });
  };
}

function stated(pool: Partial<PoolStatement>): PoolStatement {
  const need = pool.need ?? 0;
  return { pool: 'p', limit: 10, held: 0, need, least: Math.min(1, need), want: need, blockMs, ...pool };
}
