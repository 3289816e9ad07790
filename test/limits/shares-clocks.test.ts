import { type Test, test } from 'tap';
import type { Decision } from '../../src/limits/admission.js';
import type { Pool } from '../../src/limits/pool.js';
import { integersOf } from '../support/seed.js';
import type { SimulatedWorker } from './host.js';
import { type SharedHost, SimulatedHosts } from './hosts.js';
import { type Use, worstMinute } from './ledger.js';

const minute: Pool = { name: 'key:a:requests', kind: 'requests', limit: 600 };
const slots: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 10 };
const hourMs = 3_600_000;

interface Hammered {
  readonly hosts: SimulatedHosts;
  readonly uses: Use[];
  /** Offers all hosts more than there is, for so long. */
  hammer(ms: number): void;
  /** The most of any minute that begins then or later. */
  worstSince(at: number): number;
}

function twoHosts(): Hammered {
  const next = integersOf(4);
  const hosts = new SimulatedHosts({ pools: [minute], next, whenGone: 'closed' });
  const uses: Use[] = [];
  const use = (decision: Decision | { readonly outcome: 'pending' }): void => {
    if (decision.outcome === 'admitted') uses.push({ at: hosts.time.now, amount: 1 });
  };
  for (let i = 0; i < 2; i++) hosts.start();
  hosts.advance(200);
  return {
    hosts,
    uses,
    hammer(ms) {
      for (let at = 0; at < ms; at += 20) {
        const { workers } = (hosts.hosts[next(2)] as SharedHost).host;
        use((workers[next(2)] as SimulatedWorker).holder.acquire([{ pool: minute, amount: 1 }], use));
        hosts.advance(20);
      }
    },
    worstSince: (at) => worstMinute(uses.filter((each) => each.at >= at)),
  };
}

/** The limit holds, and nearly all of it is granted. */
function holds(t: Test, all: Hammered, since: number): void {
  const worst = all.worstSince(since);
  t.ok(worst <= minute.limit && worst >= minute.limit * 0.98, `${worst} within a minute`);
}

test('a call for which another host has units idle waits for them', (t) => {
  const hosts = new SimulatedHosts({ pools: [slots], next: integersOf(6) });
  const [first, second] = [hosts.start(), hosts.start()];
  hosts.advance(200);
  const held: Decision[] = [];
  const demands = [{ pool: slots, amount: 1 }];
  const keep = (decision: Decision): void => void held.push(decision);
  for (let i = 0; i < 10; i++) {
    const result = first.host.workers[0]?.holder.acquire(demands, keep);
    if (result !== undefined && result.outcome !== 'pending') keep(result);
    hosts.advance(20);
  }
  t.equal(held.filter(({ outcome }) => outcome === 'admitted').length, 10);
  // They are idle at the first host, which keeps them for a while.
  for (const decision of held) if (decision.outcome === 'admitted') decision.release();
  const heard: string[] = [];
  const result = second.host.workers[0]?.holder.acquire(demands, ({ outcome }) => heard.push(outcome));
  t.equal(result?.outcome, 'pending');
  hosts.advance(1000);
  t.strictSame(heard, ['admitted']);
  t.end();
});

test('a clock of the store that jumps back takes nothing away and gives nothing', (t) => {
  const all = twoHosts();
  all.hammer(70_000);
  all.hosts.storeAheadMs = -hourMs;
  all.hammer(130_000);
  holds(t, all, 0);
  t.strictSame(
    all.hosts.hosts.map(({ news }) => news),
    [[], []],
  );
  t.end();
});

test('after a clock of the store that jumps ahead the limit holds again within a minute', (t) => {
  const all = twoHosts();
  all.hammer(70_000);
  all.hosts.storeAheadMs = hourMs;
  const jumped = all.hosts.time.now;
  all.hammer(190_000);
  // For a moment each host is taken for one that has been silent for an hour.
  t.ok(all.worstSince(0) <= 2 * minute.limit, `${all.worstSince(0)} within a minute`);
  holds(t, all, jumped + 61_000);
  t.end();
});

test('while another host uses all units, no call is let in beyond them, however many wait', (t) => {
  const hosts = new SimulatedHosts({ pools: [slots], next: integersOf(7), whenGone: 'open' });
  const [first, second] = [hosts.start(), hosts.start()];
  hosts.advance(200);
  const demands = [{ pool: slots, amount: 1 }];
  const decided: string[] = [];
  const note = (decision: Decision): void => {
    decided.push(decision.outcome === 'denied' ? decision.reason : decision.outcome);
  };
  for (let i = 0; i < 10; i++) first.host.workers[0]?.holder.acquire(demands, note);
  hosts.advance(1000);
  t.strictSame(
    decided.filter((outcome) => outcome !== 'admitted'),
    [],
    'the first host has them all',
  );
  decided.length = 0;
  for (let at = 0; at < 6000; at += 20) {
    const result = second.host.workers[0]?.holder.acquire(demands, note);
    if (result !== undefined && result.outcome !== 'pending') note(result);
    hosts.advance(20);
  }
  hosts.advance(2000);
  t.equal(decided.length, 300);
  t.strictSame([...new Set(decided)], ['exhausted']);
  t.end();
});
