import { type Test, test } from 'tap';
import type { Decision } from '../../src/limits/admission.js';
import type { Pool } from '../../src/limits/pool.js';
import { ShareKeeper } from '../../src/limits/shares.js';
import type { HostAnswer } from '../../src/store/shares.js';
import { integersOf } from '../support/seed.js';
import { ownedUnits, type SimulatedWorker } from './host.js';
import { type SharedHost, SimulatedHosts } from './hosts.js';
import { type Use, worstMinute } from './ledger.js';

const minute: Pool = { name: 'key:a:requests', kind: 'requests', limit: 600 };
const slots: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 10 };

interface Load {
  readonly hosts: SimulatedHosts;
  readonly uses: Use[];
  /** Offers a call every `everyMs` for so long, at a host chosen for each. */
  offer(forMs: number, everyMs: number, choose: (index: number) => SharedHost): void;
  /** How many were admitted within so many milliseconds from then on. */
  within(from: number, forMs: number): number;
}

function load(count: number, whenGone: 'open' | 'closed' = 'open', pool = minute): Load {
  const next = integersOf(3);
  const hosts = new SimulatedHosts({ pools: [pool], next, whenGone });
  const uses: Use[] = [];
  for (let i = 0; i < count; i++) hosts.start();
  hosts.advance(200);
  return {
    hosts,
    uses,
    offer(forMs, everyMs, choose) {
      const use = (decision: { readonly outcome: string }): void => {
        if (decision.outcome === 'admitted') uses.push({ at: hosts.time.now, amount: 1 });
      };
      for (let index = 0; index * everyMs < forMs; index++) {
        const { workers } = choose(index).host;
        use((workers[next(workers.length)] as SimulatedWorker).holder.acquire([{ pool, amount: 1 }], use));
        hosts.advance(everyMs);
      }
    },
    within: (from, forMs) => uses.filter(({ at }) => at >= from && at < from + forMs).length,
  };
}

const byTurns =
  ({ hosts }: Load) =>
  (index: number): SharedHost =>
    hosts.hosts[index % hosts.hosts.length] as SharedHost;
const at =
  ({ hosts }: Load, host: number) =>
  (): SharedHost =>
    hosts.hosts[host] as SharedHost;

function noneIsOver(t: Test, { uses }: Load): void {
  const worst = worstMinute(uses);
  t.ok(worst <= minute.limit, `${worst} within a minute`);
}

test('two hosts that are hammered get all of a window together, and never more', (t) => {
  const all = load(2);
  const { hosts } = all;
  const begun = hosts.time.now;
  all.offer(190_000, 5, byTurns(all));
  noneIsOver(t, all);
  for (const fromMs of [0, 61_000, 122_000]) {
    const admitted = all.within(begun + fromMs, 61_000);
    t.ok(admitted >= 590, `${admitted} in the minute after ${fromMs} ms`);
  }
  t.equal(all.within(begun, 10_000), 600);
  t.same(
    hosts.hosts.map(({ news }) => news),
    [[], []],
  );
  t.end();
});

test('a host that is idle from the start holds nothing up', (t) => {
  const all = load(3);
  const begun = all.hosts.time.now;
  all.offer(10_000, 5, at(all, 1));
  t.equal(all.within(begun, 10_000), 600);
  t.end();
});

test('a load that moves to the other host gets all of it there', (t) => {
  const all = load(2);
  all.offer(20_000, 20, at(all, 0));
  const moved = all.hosts.time.now;
  all.offer(140_000, 20, at(all, 1));
  noneIsOver(t, all);
  t.ok(all.within(moved + 61_000, 61_000) >= 590, `${all.within(moved + 61_000, 61_000)} a minute later`);
  t.end();
});

test('a few units that are left at one host serve the other', (t) => {
  const all = load(2);
  all.offer(2000, 20, at(all, 0));
  const before = all.uses.length;
  const moved = all.hosts.time.now;
  all.offer(10_000, 5, at(all, 1));
  t.equal(before + all.within(moved, 10_000), 600);
  t.end();
});

test('the store is not asked for each call', (t) => {
  const all = load(2);
  const [one] = all.hosts.hosts as [SharedHost];
  const before = one.statements;
  all.offer(10_000, 20, at(all, 0));
  // 500 calls; 40 heartbeats.
  t.equal(all.uses.length, 500);
  t.ok(one.statements - before < 80, `${one.statements - before} statements`);
  t.end();
});

test('nor for each refused one', (t) => {
  const all = load(2);
  all.offer(5000, 5, byTurns(all));
  const before = all.hosts.hosts[0]?.statements ?? 0;
  all.offer(10_000, 1, byTurns(all));
  const statements = (all.hosts.hosts[0]?.statements ?? 0) - before;
  t.ok(statements < 200, `${statements} statements`);
  t.end();
});

test('what a crashed host may have used stays blocked for a minute, and then is free', (t) => {
  const all = load(2);
  all.offer(3000, 10, at(all, 0));
  const used = all.uses.length;
  all.hosts.crash(all.hosts.hosts[0] as SharedHost);
  const crashed = all.hosts.time.now;
  all.offer(150_000, 20, at(all, 0));
  noneIsOver(t, all);
  const early = all.within(crashed, 50_000);
  t.ok(used >= 290 && early >= 150 && early + used <= 600, `${used}, then ${early}`);
  t.ok(all.within(crashed + 70_000, 61_000) >= 590);
  t.end();
});

test('a share whose grant was lost on its way does not leak', (t) => {
  const all = load(2);
  for (const { way } of all.hosts.hosts) way.lossOf = 3;
  all.offer(30_000, 10, byTurns(all));
  for (const { way } of all.hosts.hosts) way.lossOf = 0;
  all.hosts.advance(140_000);
  const begun = all.hosts.time.now;
  all.offer(20_000, 5, at(all, 1));
  t.equal(all.within(begun, 20_000), 600);
  t.end();
});

test('closed: a host that is cut off uses what it has, stops in time, and the bound holds throughout', (t) => {
  const all = load(2, 'closed');
  const [cut, other] = all.hosts.hosts as [SharedHost, SharedHost];
  all.offer(2000, 10, byTurns(all));
  cut.way.isCut = true;
  const since = all.hosts.time.now;
  all.offer(4000, 10, at(all, 0));
  all.offer(20_000, 10, at(all, 0));
  t.equal(all.within(since + 5000, 19_000), 0, 'it has no right any more');
  t.same(cut.news, [false]);
  all.offer(70_000, 5, byTurns(all));
  t.equal(all.within(since + 5000, 2000), 0);
  cut.way.isCut = false;
  all.offer(130_000, 5, byTurns(all));
  noneIsOver(t, all);
  t.same([cut.news, other.news], [[false, true], []]);
  const last = all.within(all.hosts.time.now - 61_000, 61_000);
  t.ok(last >= 590, `${last} in the last minute`);
  t.end();
});

test('open: hosts without a store count alone, and together again a minute after it is back', (t) => {
  const all = load(2);
  all.offer(3000, 10, byTurns(all));
  for (const { way } of all.hosts.hosts) way.isCut = true;
  const gone = all.hosts.time.now;
  all.offer(40_000, 5, byTurns(all));
  t.same(
    all.hosts.hosts.map(({ news }) => news),
    [[false], [false]],
  );
  t.ok(all.within(gone, 40_000) >= 800, `${all.within(gone, 40_000)} without the store`);
  t.ok(worstMinute(all.uses) <= 1200);
  for (const { way } of all.hosts.hosts) way.isCut = false;
  all.hosts.advance(1500);
  const back = all.hosts.time.now;
  all.offer(180_000, 10, byTurns(all));
  t.ok(worstMinute(all.uses.filter((use) => use.at > back)) <= 600);
  t.ok(all.within(back + 62_000, 61_000) >= 590);
  t.end();
});

test('a config may change its mind while the store is gone', (t) => {
  const all = load(1, 'closed');
  const [shared] = all.hosts.hosts as [SharedHost];
  all.offer(1000, 10, byTurns(all));
  shared.way.isCut = true;
  all.offer(20_000, 10, byTurns(all));
  const used = all.uses.length;
  t.ok(used < 500, `${used} from its share`);
  all.hosts.whenGone = 'open';
  all.offer(1000, 10, byTurns(all));
  const more = all.uses.length;
  t.ok(more >= used + 80, `${more - used} alone`);
  all.hosts.whenGone = 'closed';
  all.hosts.advance(1200);
  all.offer(20_000, 10, byTurns(all));
  t.equal(all.uses.length, more);
  shared.way.isCut = false;
  all.hosts.advance(2000);
  const back = all.hosts.time.now;
  all.offer(70_000, 10, byTurns(all));
  t.ok(all.within(back, 70_000) > 0);
  noneIsOver(t, all);
  t.end();
});

test('a store that has lost everything learns it again', (t) => {
  const all = load(2);
  all.offer(3000, 10, byTurns(all));
  all.hosts.model.loseAll();
  const lost = all.hosts.time.now;
  all.offer(180_000, 10, byTurns(all));
  t.ok(worstMinute(all.uses.filter((use) => use.at > lost)) <= 600);
  t.ok(all.hosts.sum(minute.name) <= 600);
  t.ok(all.within(lost + 61_000, 61_000) >= 590);
  t.end();
});

test('a limit that is lowered takes what comes free, at each host', (t) => {
  const all = load(2);
  all.offer(10_000, 10, byTurns(all));
  t.equal(all.uses.length, 600);
  const lowered = { ...minute, limit: 100 };
  const [one, other] = all.hosts.hosts as [SharedHost, SharedHost];
  one.host.pools.set(minute.name, lowered);
  one.host.owner.reload([minute]);
  all.hosts.advance(3000);
  other.host.pools.set(minute.name, lowered);
  other.host.owner.reload([minute]);
  const changed = all.hosts.time.now;
  all.offer(130_000, 10, byTurns(all));
  t.equal(all.within(changed, 46_000), 0, 'nothing comes free for a while');
  t.ok(all.within(changed + 62_000, 61_000) <= 100);
  t.ok(all.hosts.sum(minute.name) <= 100, `${all.hosts.sum(minute.name)} units`);
  t.end();
});

test('calls at once are counted over hosts, and slots move to where they are wanted', (t) => {
  const next = integersOf(9);
  const hosts = new SimulatedHosts({ pools: [slots], next });
  for (let i = 0; i < 2; i++) hosts.start();
  let held = 0;
  let most = 0;
  let heldMs = 0;
  const use =
    ({ host }: SharedHost) =>
    (decision: Decision) => {
      if (decision.outcome !== 'admitted') return;
      most = Math.max(most, ++held);
      const lastsMs = 200 + next(400);
      heldMs += lastsMs;
      host.at(host.now + lastsMs, () => {
        held--;
        decision.release();
      });
    };
  const offer = (forMs: number, choose: () => SharedHost): void => {
    for (let at = 0; at < forMs; at += 10) {
      hosts.advance(10);
      const shared = choose();
      const worker = shared.host.workers[next(2)] as SimulatedWorker;
      const result = worker.holder.acquire([{ pool: slots, amount: 1 }], use(shared));
      if (result.outcome !== 'pending') use(shared)(result);
    }
  };
  offer(10_000, () => hosts.hosts[next(2)] as SharedHost);
  t.equal(most, 10);
  for (const only of [0, 1, 0]) {
    hosts.advance(1000);
    heldMs = 0;
    offer(10_000, () => hosts.hosts[only] as SharedHost);
    t.ok(heldMs / 100_000 > 0.8, `${Math.round(heldMs / 1000)} % at one host alone`);
  }
  t.equal(most, 10);
  t.end();
});

test('nothing is remembered of what nobody uses', (t) => {
  const all = load(2);
  all.offer(5000, 50, byTurns(all));
  all.hosts.advance(90_000);
  t.strictSame(
    all.hosts.hosts.map(({ host }) => ownedUnits(host.owner)),
    [[], []],
  );
  t.equal(all.hosts.model.sharesOf(minute.name).size, 0);
  t.end();
});

test('a host that leaves gives back what it did not use', (t) => {
  const all = load(2);
  all.offer(1000, 10, at(all, 0));
  const [leaving, other] = all.hosts.hosts as [SharedHost, SharedHost];
  all.hosts.advance(3000);
  leaving.keeper.leave();
  all.hosts.advance(10);
  all.hosts.crash(leaving);
  const begun = all.hosts.time.now;
  all.offer(10_000, 5, () => other);
  t.equal(all.within(begun, 10_000), 500);
  t.end();
});

test('a host that was held up itself does not take the store for gone', (t) => {
  const news: boolean[] = [];
  const answers: ((answer: HostAnswer | null) => void)[] = [];
  let now = 1000;
  const keeper = new ShareKeeper({
    now: () => now,
    host: 'a',
    whenGone: () => 'open',
    onAvailable: (isAvailable) => news.push(isAvailable),
    exchange: (_statement, onAnswer) => answers.push(onAnswer),
  });
  keeper.tick();
  now += 4000;
  // The answer has long been there, and could not be read.
  keeper.tick();
  answers[0]?.({ seen: 0, pools: [], wanted: [] });
  t.strictSame(news, []);
  now += 1000;
  for (let ticks = 0; ticks < 20; ticks++) {
    keeper.tick();
    now += 100;
  }
  t.strictSame([news, keeper.isAvailable, keeper.until], [[false], false, null]);
  t.end();
});
