import { pino } from 'pino';
import { test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { createBudgetWatch } from '../../src/supervisor/leases.js';

const dollar = 1_000_000_000;
const noon = Date.UTC(2026, 10, 26, 12);
const day = 24 * 60 * 60 * 1000;

interface Line {
  readonly budget?: string;
  readonly percent?: number;
}

/** A watch over budgets of ten dollars each, of which so much is reserved and this host has not spent so much. */
function stage(records = new Set<string>()) {
  const pools = new Map<string, { reserved: number; unspent: number }>();
  const lines: Line[] = [];
  const time = { now: noon };
  const state = { reads: 0, isGone: false, spent: 0, limit: 10 as number | null };
  const watch = createBudgetWatch({
    store: {
      create(collection, id) {
        const key = `${collection}/${id}`;
        const isNew = !records.has(key);
        records.add(key);
        return Promise.resolve(isNew);
      },
    },
    inUse: () => [...pools.keys()].map((name) => ({ name, limit: 10 * dollar })).values(),
    limitOf: () => (state.limit === null ? undefined : state.limit * dollar),
    shareOf: (account) => (pools.get(account)?.unspent ?? 0) * dollar,
    reserved(account) {
      state.reads++;
      if (state.isGone) return Promise.reject(new GatewayError('store_unavailable'));
      return Promise.resolve((pools.get(account)?.reserved ?? state.spent) * dollar);
    },
    now: () => time.now,
    log: pino({ base: null }, { write: (text: string) => lines.push(JSON.parse(text) as Line) }),
  });
  const told = () => lines.map(({ budget, percent }) => `${budget} ${percent}`);
  const shown = () => {
    const { labelValues, values } = watch.gauge();
    return values.map((value, index) => [...labelValues.slice(2 * index, 2 * index + 2), value]);
  };
  return { pools, time, state, watch, told, shown, records };
}

test('how far budgets are used is a gauge, and passing a mark a line, once', async (t) => {
  const { pools, watch, told, shown } = stage();
  const account = 'key:team-a:budget:2026-11';
  pools.set(account, { reserved: 4, unspent: 0.5 });
  pools.set('group:a:b:budget:2026-W48', { reserved: 6, unspent: 0 });
  for (let look = 0; look < 3; look++) await watch.look();
  t.same(shown(), [
    ['key', 'team-a', 0.35],
    ['group', 'a:b', 0.6],
  ]);
  t.same(told(), ['group:a:b 50']);
  pools.set(account, { reserved: 8.5, unspent: 0.1 });
  await watch.look();
  await watch.look();
  t.same(told().slice(1), ['key:team-a 50', 'key:team-a 80'], 'all that were passed');
  pools.set(account, { reserved: 10, unspent: 0.05 });
  await watch.look();
  await watch.look();
  t.same(told().slice(3), ['key:team-a 100'], 'nothing is left to speak of');
});

test('a budget that is used up between two looks is told, though its host holds nothing of it any more', async (t) => {
  const { state, watch, told, shown } = stage();
  const name = 'key:team-a:budget:2026-11';
  state.spent = 10;
  await watch.look();
  watch.leave({ name, limit: 10 * dollar });
  state.isGone = true;
  await watch.look();
  t.same(told(), [], 'it waits for the store');
  state.isGone = false;
  await watch.look();
  await watch.look();
  t.same(told(), ['key:team-a 50', 'key:team-a 80', 'key:team-a 100']);
  t.same(shown(), [['key', 'team-a', 1]]);
});

test('a budget of which its host holds nothing any more is read again: others spend of it', async (t) => {
  const { state, watch, told, shown } = stage();
  watch.leave({ name: 'key:team-a:budget:2026-11', limit: 10 * dollar });
  state.spent = 1;
  await watch.look();
  t.same(shown(), [['key', 'team-a', 0.1]]);
  state.spent = 6;
  await watch.look();
  await watch.look();
  t.same(shown(), [['key', 'team-a', 0.6]]);
  t.same(told(), ['key:team-a 50']);
});

test('a budget that its host does not use is judged by the limit that is in force, and no longer shown without one', async (t) => {
  const { state, watch, told, shown } = stage();
  watch.leave({ name: 'key:team-a:budget:2026-11', limit: dollar });
  state.spent = 4;
  await watch.look();
  Object.assign(state, { limit: 100, spent: 12 });
  await watch.look();
  t.same(told(), []);
  t.same(shown(), [['key', 'team-a', 0.12]]);
  state.limit = null;
  await watch.look();
  t.same(shown(), []);
});

test('a budget of a period that has ended is told, and not shown in place of the one that follows it', async (t) => {
  const { pools, time, state, watch, told, shown } = stage();
  time.now = Date.UTC(2026, 11, 1, 0, 1);
  pools.set('key:team-a:budget:2026-12', { reserved: 1, unspent: 0 });
  await watch.look();
  t.same(shown(), [['key', 'team-a', 0.1]]);
  watch.leave({ name: 'key:team-a:budget:2026-11', limit: 10 * dollar });
  state.spent = 6;
  // The new one is not reached by this look.
  pools.clear();
  for (let other = 0; other < 300; other++)
    pools.set(`key:${other}:budget:2026-12`, { reserved: 0, unspent: 0 });
  pools.set('key:team-a:budget:2026-12', { reserved: 1, unspent: 0 });
  await watch.look();
  t.same(told(), ['key:team-a 50']);
  t.same(shown()[0], ['key', 'team-a', 0.1]);
});

test('what was reserved of a budget that is in use again before it is looked at does not count as used', async (t) => {
  const { pools, watch, told, shown } = stage();
  const name = 'key:team-a:budget:2026-11';
  watch.leave({ name, limit: 10 * dollar });
  pools.set(name, { reserved: 6, unspent: 5 });
  await watch.look();
  t.same(told(), []);
  t.same(shown(), [['key', 'team-a', 0.1]]);
});

test('marks are told once by all hosts, and again in the next period', async (t) => {
  const first = stage();
  const second = stage(first.records);
  for (const { pools } of [first, second])
    pools.set('model:m:budget:2026-11-26', { reserved: 9, unspent: 0 });
  await first.watch.look();
  await second.watch.look();
  t.same(first.told(), ['model:m 50', 'model:m 80']);
  t.same(second.told(), []);
  t.same(second.shown(), [['model', 'm', 0.9]]);
  first.time.now += day;
  first.pools.clear();
  await first.watch.look();
  await first.watch.look();
  t.same(first.shown(), [], 'the day is over');
  first.pools.set('model:m:budget:2026-11-27', { reserved: 5, unspent: 0 });
  await first.watch.look();
  await first.watch.look();
  t.same(first.told().slice(2), ['model:m 50']);
});

test('a look reads a bounded number of accounts, and goes on with the others; the fullest are shown', async (t) => {
  const { pools, state, watch, shown } = stage();
  for (let index = 0; index < 1500; index++)
    pools.set(`key:k${index}:budget:2026-11`, { reserved: index / 1500, unspent: 0 });
  await watch.look();
  t.equal(state.reads, 200);
  for (let look = 0; look < 20; look++) await watch.look();
  const names = shown().map(([, name]) => name);
  t.equal(names.length, 1000);
  t.ok(names.includes('k1499'));
  t.notOk(names.includes('k0'));
});

test('while the store is gone, what was seen stands', async (t) => {
  const { pools, state, watch, shown } = stage();
  pools.set('key:k:budget:2026-11', { reserved: 2, unspent: 0 });
  await watch.look();
  state.isGone = true;
  await watch.look();
  await watch.look();
  t.same(shown(), [['key', 'k', 0.2]]);
});
