import { test } from 'tap';
import type { Pool, PoolView } from '../../src/limits/pool.js';
import { RateLines } from '../../src/limits/rate-headers.js';

const requests: Pool = { name: 'key:a:requests', kind: 'requests', limit: 10_000 };
const groupRequests: Pool = { name: 'group:g:requests', kind: 'requests', limit: 100_000 };
const tokens: Pool = { name: 'key:a:tokens', kind: 'tokens', limit: 10_000_000 };

/** A holder that knows what is left of each pool. */
function holderOf(left: Map<Pool, number>) {
  return {
    ticks: 5,
    peek: (pool: Pool): PoolView => ({ limit: pool.limit, remaining: left.get(pool) ?? 0, resetMs: 20 }),
  };
}

const remainingOf = (lines: string): string[] =>
  [...lines.matchAll(/remaining[a-z-]*: (\d+)/g)].map(([, number]) => number as string);

test('while a lot is left and many ask, the same lines are told until the holder ticks', async (t) => {
  const left = new Map([
    [requests, 9000],
    [tokens, 9_000_000],
  ]);
  const holder = holderOf(left);
  const lines = new RateLines([requests], [tokens]);
  const first = lines.text('chat', 'vendorc', holder);
  t.equal(lines.lately('chat', holder.ticks), null, 'nothing is kept for one who asks once');
  const told = lines.text('chat', 'vendorc', holder);
  t.equal(told, first);
  t.same(remainingOf(told), ['9000', '9000000']);
  left.set(requests, 8000);
  t.equal(lines.lately('chat', holder.ticks), told);
  holder.ticks += 1;
  t.equal(lines.lately('chat', holder.ticks), null);
  t.same(remainingOf(lines.text('chat', 'vendorc', holder)), ['8000', '9000000']);
});

test('where little is left of either, each call is told what is left now', async (t) => {
  const rests: readonly (readonly [number, number])[] = [
    [999, 9_000_000],
    [9000, 999_999],
  ];
  for (const [first, second] of rests) {
    const left = new Map([
      [requests, first],
      [tokens, second],
    ]);
    const holder = holderOf(left);
    const lines = new RateLines([requests], [tokens]);
    for (let asked = 0; asked < 3; asked++) {
      lines.text('chat', 'vendorc', holder);
      t.equal(lines.lately('chat', holder.ticks), null);
    }
    left.set(requests, first - 1);
    t.equal(remainingOf(lines.text('chat', 'vendorc', holder))[0], `${first - 1}`);
  }
});

test('once little is left, what was told before is told no more', async (t) => {
  const left = new Map([[requests, 9000]]);
  const holder = holderOf(left);
  const lines = new RateLines([requests], []);
  lines.text('chat', 'vendorc', holder);
  t.equal(lines.text('chat', 'vendorc', holder), lines.lately('chat', holder.ticks));
  left.set(requests, 0);
  t.same(remainingOf(lines.text('chat', 'vendorc', holder)), ['0']);
  t.equal(lines.lately('chat', holder.ticks), null);
});

test('a caller of the other family is told in its own words', async (t) => {
  const holder = holderOf(
    new Map([
      [requests, 9000],
      [tokens, 9_000_000],
    ]),
  );
  const lines = new RateLines([requests], [tokens]);
  lines.text('chat', 'vendorc', holder);
  t.match(lines.text('chat', 'vendorc', holder), /^\r\nx-ratelimit-limit-requests: 10000\r\n/);
  t.equal(lines.lately('messages', holder.ticks), null);
  t.match(lines.text('messages', 'acme', holder), /^\r\nacme-ratelimit-requests-limit: 10000\r\n/);
  t.match(lines.text('chat', 'vendorc', holder), /^\r\nx-ratelimit-limit-requests: 10000\r\n/);
});

test('of several limits of a kind the one that is met first is told, and of none nothing', async (t) => {
  const holder = holderOf(
    new Map([
      [requests, 9000],
      [groupRequests, 50_000],
    ]),
  );
  t.same(remainingOf(new RateLines([requests, groupRequests], []).text('chat', 'v', holder)), ['50000']);
  t.equal(new RateLines([], []).text('chat', 'v', holder), '');
});
