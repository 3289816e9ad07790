import { test } from 'tap';
import type { Denial } from '../../src/limits/admission.js';
import type { Pool } from '../../src/limits/pool.js';
import { admitted, ask, finish, startBudgetHost } from './budget-host.js';
import { ownedUnits, type SimulatedWorker } from './host.js';
import { pass, SimulatedAccounts } from './simulated-accounts.js';
import { SimulatedTime } from './time.js';

const total = 100_000;
const slice = total / 100;
const budget: Pool = { name: 'key:a:budget:2026-11', kind: 'budget', limit: total };

function start(workers = 2, whenGone: 'open' | 'closed' = 'closed') {
  const time = new SimulatedTime();
  const accounts = new SimulatedAccounts(time);
  const begin = () => startBudgetHost({ time, accounts, pools: [budget], workers, whenGone: () => whenGone });
  const { host, source, told } = begin();
  const [first, second] = host.workers as [SimulatedWorker, SimulatedWorker];
  const wait = (ms: number) => pass(time, ms, ms > 1000 ? 10 : 1);
  const reserved = () => accounts.reserved.get(budget.name) ?? 0;
  /** Asks, and waits until that is decided. */
  const call = async (worker: SimulatedWorker, amount: number) => {
    const asked = ask(worker, budget, amount);
    for (let waited = 0; asked.decision === null && waited < 3000; waited++) await pass(time, 1);
    return asked.decision;
  };
  const take = async (worker: SimulatedWorker, amount: number) =>
    admitted({ decision: await call(worker, amount) });
  const reason = async (worker: SimulatedWorker, amount: number) =>
    ((await call(worker, amount)) as Denial).reason;
  return { time, accounts, begin, host, source, told, first, second, wait, reserved, call, take, reason };
}

test('a slice is reserved at a time, and more where a call needs more', async (t) => {
  const { accounts, first, reserved, take } = start();
  for (let i = 0; i < 20; i++) t.ok(await take(first, 10));
  t.equal(reserved(), slice);
  t.equal(accounts.asked.length, 1);
  t.ok(await take(first, 5 * slice));
  t.equal(reserved(), slice + (5 * slice - (slice - 200)), 'what was there already is used');
});

test('all of a budget can be spent, and not a unit more', async (t) => {
  const { first, second, reserved, take, call } = start();
  let spent = 0;
  for (let i = 0; spent < total; i++) {
    const amount = Math.min(total - spent, 700);
    const admission = await take(i % 2 === 0 ? first : second, amount);
    if (admission === null) break;
    finish(admission, amount);
    spent += amount;
  }
  t.equal(spent, total);
  t.equal(reserved(), total);
  t.match(await call(first, 1), { outcome: 'denied', reason: 'exhausted' });
});

test('an account that has too little is left alone for a while, and then asked again', async (t) => {
  const { host, accounts, first, second, wait, take, reason } = start();
  accounts.reserved.set(budget.name, total);
  for (const worker of [first, second, first, second]) t.equal(await reason(worker, 100), 'exhausted');
  t.equal(accounts.asked.length, 1);
  accounts.reserved.set(budget.name, 0);
  await wait(1500);
  finish(await take(first, 100), 100);
  await wait(20_000);
  accounts.reserved.set(budget.name, total);
  t.equal(await reason(first, 2 * slice), 'exhausted');
  await wait(3000);
  t.same(ownedUnits(host.owner), [], 'and forgotten in the end');
});

test('what is too little for one call may be enough for a smaller one', async (t) => {
  const { accounts, first, second, take, reason } = start();
  accounts.reserved.set(budget.name, total - 100);
  for (let i = 0; i < 5; i++) t.equal(await reason(first, 500), 'exhausted');
  t.equal(accounts.asked.length, 1);
  t.ok(await take(first, 60));
  t.equal(await reason(second, 60), 'exhausted');
  t.ok(await take(second, 40));
});

test('who comes while a slice is on its way is served from it, and the account is not taken for empty', async (t) => {
  const { accounts, first, second, wait, take } = start();
  accounts.delayMs = 20;
  const one = ask(first, budget, 10);
  await wait(10);
  const other = ask(second, budget, 10);
  await wait(100);
  t.ok(admitted(one));
  t.ok(admitted(other));
  t.equal(accounts.asked.length, 1);
  t.ok(await take(first, 2 * slice), 'there is more');
});

test('what calls cost beyond what they took is told to the account', async (t) => {
  const { first, wait, reserved, take, reason } = start();
  finish(await take(first, 10), total + 5000);
  await wait(1000);
  t.equal(reserved(), total + 5000);
  t.equal(await reason(first, 1), 'exhausted');
});

test('what is free for ten seconds goes back, and nothing is remembered of the budget', async (t) => {
  const { host, first, wait, reserved, take } = start();
  finish(await take(first, 10), 4);
  t.equal(reserved(), slice);
  await wait(20_000);
  t.equal(reserved(), 4);
  t.same(ownedUnits(host.owner), []);
  t.ok(await take(first, total - 4));
});

test('another total holds with the next reservation', async (t) => {
  const { host, first, wait, reserved, take, reason } = start();
  const reload = (limit: number) => {
    host.pools.set(budget.name, { ...budget, limit });
    host.owner.reload([budget]);
  };
  finish(await take(first, total), total);
  t.equal(await reason(first, 1), 'exhausted');
  await wait(1000);
  reload(2 * total);
  t.ok(await take(first, 1000), 'a raised one');
  await wait(3000);
  reload(total);
  await wait(5000);
  t.equal(reserved(), total + 1000, 'what is not in use beyond a lowered one goes back');
  t.equal(await reason(first, 1), 'exhausted');
});

test('a total that is lowered while a reservation is on its way holds for that, too', async (t) => {
  const { host, accounts, first, wait, reserved } = start();
  accounts.reserved.set(budget.name, total / 2);
  accounts.delayMs = 50;
  const asked = ask(first, budget, 10);
  await wait(75);
  host.pools.set(budget.name, { ...budget, limit: total / 2 });
  host.owner.reload([budget]);
  await wait(1000);
  t.match(asked.decision, { outcome: 'denied', reason: 'exhausted' });
  t.equal(reserved(), total / 2);
});

test('while the store is gone nothing is let in that was not reserved before, and then all is well again', async (t) => {
  const { accounts, told, first, wait, take, reason } = start();
  t.ok(await take(first, 10));
  accounts.fate = () => 'failed';
  t.ok(await take(first, 10), 'from what was reserved');
  t.equal(await reason(first, 2 * slice), 'unknown');
  t.equal(await reason(first, 2 * slice), 'unknown');
  t.same(told, [false]);
  accounts.fate = () => 'good';
  await wait(2000);
  t.ok(await take(first, 2 * slice));
  t.same(told, [false, true]);
});

test('nor who comes while a call of the store is under way that fails', async (t) => {
  const { accounts, first, second, wait, reserved } = start();
  accounts.fate = () => 'failed';
  accounts.delayMs = 20;
  const asked = [ask(first, budget, 10)];
  await wait(10);
  asked.push(ask(second, budget, 10));
  await wait(100);
  for (const { decision } of asked) t.match(decision, { outcome: 'denied', reason: 'unknown' });
  await wait(1000);
  t.equal(reserved(), 0);
});

test('where an outage is to be open calls spend, and the store is told when it is back, whoever calls', async (t) => {
  const { accounts, told, first, second, wait, reserved, take } = start(2, 'open');
  accounts.fate = () => 'failed';
  for (let i = 0; i < 10; i++) finish(await take(i % 2 === 0 ? first : second, total / 2), total / 2);
  t.equal(reserved(), 0);
  await wait(20_000);
  t.ok(accounts.asked.length < 60, 'a store that is gone is not asked all the time');
  accounts.fate = () => 'good';
  await wait(3000);
  t.equal(reserved(), 5 * total);
  t.same(told, [false, true]);
});

test('where an outage is to be open nobody waits for a store that says nothing, and all is told when it does', async (t) => {
  const { accounts, told, first, second, time, wait, reserved, take } = start(2, 'open');
  accounts.delayMs = 1000;
  accounts.fate = () => 'failed';
  let longest = 0;
  for (let i = 0; i < 20; i++) {
    const asked = time.now;
    finish(await take(i % 2 === 0 ? first : second, total / 2), total / 2);
    longest = Math.max(longest, time.now - asked);
    await wait(300);
  }
  t.ok(longest < 700, `${longest} ms`);
  accounts.delayMs = 1;
  accounts.fate = () => 'good';
  await wait(5000);
  t.equal(reserved(), 10 * total);
  t.same(told, [false, true]);
});

test('what was spent in an outage is told at the end at the latest', async (t) => {
  const { accounts, source, time, first, reserved, take } = start(1, 'open');
  accounts.fate = () => 'failed';
  finish(await take(first, 5000), 5000);
  accounts.fate = () => 'good';
  first.holder.close();
  await pass(time, 10);
  const leaving = source.leave();
  await pass(time, 20);
  await leaving;
  t.equal(reserved(), 5000);
});

test('a store that is slow refuses nobody, and one that does not answer says that nothing is used up', async (t) => {
  const { accounts, second, first, take, reason } = start();
  accounts.delayMs = 300;
  t.ok(await take(first, 10));
  accounts.delayMs = 20_000;
  t.equal(await reason(second, 2 * slice), 'unknown');
  t.equal(await reason(second, 2 * slice), 'unknown');
});

test('at the end all goes back that was not spent, also what is on its way', async (t) => {
  const { time, host, source, accounts, first, second, wait, reserved, take } = start();
  finish(await take(first, 10), 7);
  ask(second, budget, 3 * slice);
  accounts.delayMs = 100;
  await wait(5);
  for (const { holder } of host.workers) holder.close();
  await wait(5);
  for (const worker of [...host.workers]) host.kill(worker);
  await wait(5);
  const leaving = source.leave();
  await pass(time, 1000);
  await leaving;
  t.equal(reserved(), 7);
});

test('a lost answer costs a slice, and no more', async (t) => {
  const { accounts, first, wait, reserved, take, reason } = start();
  accounts.fate = () => 'lost';
  t.equal(await reason(first, 10), 'unknown');
  accounts.fate = () => 'good';
  await wait(1000);
  finish(await take(first, 10), 10);
  await wait(20_000);
  t.equal(reserved(), slice + 10);
});

test('what was spent beyond what was reserved is taken once, however many answers are lost', async (t) => {
  const { accounts, first, wait, reserved, take } = start(1, 'open');
  accounts.fate = () => 'failed';
  finish(await take(first, 5000), 5000);
  accounts.fate = () => 'lost';
  await wait(3000);
  accounts.fate = () => 'failed';
  finish(await take(first, 2000), 2000);
  accounts.fate = () => 'good';
  await wait(3000);
  t.equal(reserved(), 7000);
});

test('a host that is killed has spent what it had, and its successor goes on from there', async (t) => {
  const { host, begin, first, wait, reserved, take } = start();
  finish(await take(first, 10), 3);
  host.stop();
  await wait(10);
  t.equal(reserved(), slice);
  const [worker] = begin().host.workers as [SimulatedWorker];
  t.equal(await take(worker, total - slice + 1), null);
  await wait(1500);
  t.ok(await take(worker, total - slice));
});

test('the next period has a budget of its own, and that of the one before goes back', async (t) => {
  const { time, host, accounts, first, wait, take } = start();
  const next: Pool = { ...budget, name: 'key:a:budget:2026-12' };
  host.pools.set(next.name, next);
  finish(await take(first, total), 400);
  const asked = ask(first, next, total);
  await pass(time, 50);
  t.ok(admitted(asked));
  await wait(20_000);
  t.equal(accounts.reserved.get(budget.name), 400);
  t.equal(accounts.reserved.get(next.name), total);
  t.same(
    ownedUnits(host.owner).map(({ name }) => name),
    [next.name],
  );
});

test('as many budgets as there are keys are asked for and given back a few at a time, and none is lost', async (t) => {
  for (const isLeaving of [false, true]) {
    const time = new SimulatedTime();
    const accounts = new SimulatedAccounts(time);
    const budgets = Array.from({ length: 1300 }, (_, i): Pool => ({ ...budget, name: `key:${i}:budget` }));
    const { source, host, told } = startBudgetHost({
      time,
      accounts,
      pools: budgets,
      workers: 1,
      looks: false,
    });
    const [worker] = host.workers as [SimulatedWorker];
    const asked = budgets.map((pool) => ask(worker, pool, 10));
    await pass(time, 100);
    for (const each of asked) finish(admitted(each), 7);
    t.equal(host.fault(), null);
    if (isLeaving) {
      await pass(time, 2000, 50);
      worker.holder.close();
      await pass(time, 10);
      const left = source.leave();
      await pass(time, 100);
      await left;
    } else await pass(time, 60_000, 50);
    t.equal(host.fault(), null);
    const spent = budgets.map(({ name }) => accounts.reserved.get(name));
    t.strictSame(new Set(spent), new Set([7]), 'what was spent, and no unit more');
    t.ok(accounts.mostUnderWay <= 512, `${accounts.mostUnderWay} calls of the store at once`);
    t.strictSame(told, [], 'the store was never taken for gone');
  }
});

test('four thousand budgets that wait are lent to when the store is gone, and after it comes back each is told of what was spent', async (t) => {
  const time = new SimulatedTime();
  const accounts = new SimulatedAccounts(time);
  const budgets = Array.from({ length: 4000 }, (_, i): Pool => ({ ...budget, name: `key:${i}:budget` }));
  const { source, host, told } = startBudgetHost({
    time,
    accounts,
    pools: budgets,
    workers: 1,
    whenGone: () => 'open',
    looks: false,
  });
  const [worker] = host.workers as [SimulatedWorker];
  accounts.fate = () => 'failed';
  const asked = budgets.map((pool) => ask(worker, pool, 10));
  await pass(time, 1000, 20);
  for (const each of asked) finish(admitted(each), 7);
  t.ok(
    asked.every(({ decision }) => decision?.outcome === 'admitted'),
    'all were lent to',
  );
  accounts.fate = () => 'good';
  worker.holder.close();
  await pass(time, 2000, 50);
  const left = source.leave();
  await pass(time, 100);
  await left;
  t.strictSame(new Set(budgets.map(({ name }) => accounts.reserved.get(name))), new Set([7]));
  t.strictSame(told, [false, true]);
});
