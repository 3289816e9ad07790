import { test } from 'tap';
import { TargetHealth } from '../../src/attempts/health.js';
import { type FailedOutcome, longestRetryAfterMs, restMs } from '../../src/attempts/outcome.js';
import type { RoutingSettings } from '../../src/config/types.js';
import { cases, fc } from '../support/seed.js';
import { settings } from './targets.js';

const quick: RoutingSettings = {
  ...settings,
  failures: 3,
  failureRate: 0.5,
  minimumCalls: 10,
  windowMs: 1000,
  openMs: 100,
  maxOpenMs: 400,
};
const failure: FailedOutcome = { kind: 'failure', error: 'reset', retryAfterMs: null };
const limited: FailedOutcome = { kind: 'rateLimited', error: '429', retryAfterMs: null };
const make = (change: Partial<RoutingSettings> = {}) =>
  new TargetHealth('u', 'm', { ...quick, ...change }, [], () => {});

function fail(health: TargetHealth, now: number, times = 1): void {
  for (let i = 0; i < times; i++) health.ended(now, health.began(now), failure);
}

function succeed(health: TargetHealth, now: number, times = 1): void {
  for (let i = 0; i < times; i++) health.ended(now, health.began(now), 'success');
}

test('failures in a row open the circuit, and a success between them starts the row anew', async (t) => {
  const health = make();
  fail(health, 0, 2);
  succeed(health, 0);
  fail(health, 0, 2);
  t.ok(health.mayTake(0));
  fail(health, 0);
  t.notOk(health.mayTake(0));
  t.match(health.status(0), { state: 'open', waitMs: 100, consecutiveFailures: 3 });
});

test('a share of failures opens it, but not of few calls', async (t) => {
  const health = make({ failures: 1000 });
  for (let i = 0; i < 4; i++) {
    succeed(health, 0);
    fail(health, 0);
  }
  succeed(health, 0);
  t.equal(health.status(0).calls, 9);
  t.equal(health.status(0).state, 'closed');
  fail(health, 0);
  t.equal(health.status(0).state, 'open');
});

test('a share that is met to the last digit opens it', async (t) => {
  const health = make({ failures: 1000, failureRate: 0.1, minimumCalls: 30 });
  succeed(health, 0, 27);
  fail(health, 0, 2);
  t.ok(health.mayTake(0));
  fail(health, 0);
  t.notOk(health.mayTake(0));
});

test('what is older than the window is forgotten slot by slot', async (t) => {
  const health = make({ failures: 1000, minimumCalls: 1000 });
  for (let now = 0; now < 1000; now += 100) {
    succeed(health, now);
    fail(health, now);
  }
  t.match(health.status(999), { calls: 20, failures: 10 });
  t.match(health.status(1000), { calls: 18, failures: 9 });
  t.match(health.status(1450), { calls: 10, failures: 5 });
  t.match(health.status(1e9), { calls: 0, failures: 0 });
  t.match(health.status(0), { calls: 0, failures: 0 }, 'a time that goes back changes nothing');
});

test('one probe goes when its time has come, and closes the circuit when it succeeds', async (t) => {
  const health = make();
  fail(health, 0, 3);
  t.notOk(health.mayTake(99.9));
  t.ok(health.mayTake(100));
  t.equal(health.status(100).state, 'half-open');
  const probe = health.began(100);
  t.notOk(health.mayTake(100));
  t.notOk(health.mayTake(1e6), 'however long it takes');
  t.ok(health.earliest(200) > 200, 'and nobody is told to come at once');
  health.ended(150, probe, 'success');
  t.ok(health.mayTake(150));
  t.match(health.status(150), { state: 'closed', calls: 1, failures: 0, consecutiveFailures: 0, waitMs: 0 });
});

test('it stays open for twice as long after every failed probe, up to the longest, and begins anew', async (t) => {
  const health = make();
  fail(health, 0, 3);
  let now = 0;
  for (const openMs of [100, 200, 400, 400]) {
    t.equal(health.earliest(now), now + openMs);
    now += openMs;
    fail(health, now);
  }
  now += 400;
  succeed(health, now);
  fail(health, now, 3);
  t.equal(health.earliest(now), now + 100);
});

test('a probe whose client left frees its place and says nothing', async (t) => {
  const health = make();
  fail(health, 0, 3);
  const probe = health.began(100);
  health.ended(110, probe, 'uncounted');
  t.ok(health.mayTake(110));
  const other = health.began(110);
  t.not(other, probe);
  t.notOk(health.mayTake(110));
  health.ended(120, other, failure);
  t.equal(health.earliest(120), 320);
});

test('a probe that is refused for the number of calls frees its place and leaves the circuit as it is', async (t) => {
  const health = make();
  fail(health, 0, 3);
  health.ended(110, health.began(100), { ...limited, retryAfterMs: 50 });
  t.notOk(health.mayTake(159));
  t.ok(health.mayTake(160));
  t.equal(health.status(160).state, 'half-open');
});

test('a probe that is being answered closes the circuit before its end, which counts like any other', async (t) => {
  const health = make({ failures: 2 });
  fail(health, 0, 2);
  const probe = health.began(100);
  health.answered(probe);
  t.ok(health.mayTake(100));
  health.ended(200, probe, failure);
  t.match(health.status(200), { state: 'closed', consecutiveFailures: 1, inFlight: 0 });
  fail(health, 200);
  t.equal(health.status(200).state, 'open');
});

test('an answer to a call that is no probe closes nothing', async (t) => {
  const health = make();
  const early = health.began(0);
  fail(health, 0, 3);
  const probe = health.began(100);
  health.answered(early);
  t.notOk(health.mayTake(100));
  health.ended(100, probe, 'success');
  t.ok(health.mayTake(100));
});

test('late results of calls from before decide nothing', async (t) => {
  const health = make();
  const early = Array.from({ length: 20 }, () => health.began(0));
  const [first, second, third, fourth, fifth, sixth, ...others] = early as [number, ...number[]];
  for (const ticket of [first, second, third]) health.ended(1, ticket as number, failure);
  t.equal(health.earliest(1), 101);
  health.ended(50, fourth as number, failure);
  t.equal(health.earliest(50), 101, 'open no longer for it');
  health.ended(60, fifth as number, 'success');
  t.notOk(health.mayTake(60), 'nor closed');
  const probe = health.began(101);
  health.ended(102, sixth as number, 'uncounted');
  t.notOk(health.mayTake(102), 'the place of the probe is not theirs to free');
  health.ended(103, probe, 'success');
  for (const ticket of others) health.ended(104, ticket, failure);
  t.match(health.status(104), { state: 'closed', failures: 0, inFlight: 0 });
});

test('a call that says nothing takes nothing from what the others say', async (t) => {
  for (const outcome of ['uncounted', limited] as const) {
    const health = make();
    const others = Array.from({ length: 3 }, () => health.began(0));
    health.ended(0, health.began(0), outcome);
    t.match(health.status(0), { calls: 0, consecutiveFailures: 0 });
    for (const ticket of others) health.ended(0, ticket, failure);
    t.equal(health.status(0).state, 'open');
  }
});

test('a call that goes although it may not is in flight and nothing else', async (t) => {
  const health = make();
  fail(health, 0, 3);
  const ticket = health.began(50);
  t.equal(health.inFlight, 1);
  health.ended(60, ticket, 'success');
  t.equal(health.inFlight, 0);
  t.equal(health.status(60).state, 'open');
});

test('a target is left alone for as long as it asks, which is no illness when there are too many calls', async (t) => {
  const health = make();
  for (let i = 0; i < 50; i++) health.ended(0, health.began(0), { ...limited, retryAfterMs: 700 });
  t.notOk(health.mayTake(699));
  t.match(health.status(0), { state: 'cooling', calls: 0, failures: 0, waitMs: 700 });
  t.ok(health.mayTake(700));
  health.ended(700, health.began(700), { ...failure, retryAfterMs: 300 });
  t.match(health.status(700), { state: 'cooling', failures: 1, waitMs: 300 });
});

test('an earlier and shorter wish does not shorten a longer one, and none is without end', async (t) => {
  const health = make();
  const told = (retryAfterMs: number) => health.ended(0, health.began(0), { ...limited, retryAfterMs });
  told(500);
  told(100);
  t.equal(health.earliest(0), 500);
  told(Number.POSITIVE_INFINITY);
  t.equal(health.earliest(0), longestRetryAfterMs);
  const other = make();
  for (const retryAfterMs of [0, -5, Number.NaN])
    other.ended(0, other.began(0), { ...limited, retryAfterMs });
  t.ok(other.mayTake(0));
  t.ok(other.isResting(0));
});

test('an open circuit waits for what the target asked, when that is longer', async (t) => {
  const health = make();
  for (let i = 0; i < 3; i++) health.ended(0, health.began(0), { ...failure, retryAfterMs: 5000 });
  t.equal(health.earliest(0), 5000);
  t.notOk(health.mayTake(4999));
  t.equal(health.began(4999), 0);
  t.ok(health.mayTake(5000));
});

test('a refusal without a time lets the target rest a little, and it may be taken all the same', async (t) => {
  const health = make();
  health.ended(0, health.began(0), limited);
  t.ok(health.mayTake(0));
  t.ok(health.isResting(restMs - 1));
  t.equal(health.status(0).state, 'cooling');
  t.equal(health.status(0).waitMs, 0);
  t.notOk(health.isResting(restMs));
});

test('the last error is told, in few words', async (t) => {
  const health = make();
  t.match(health.status(0), { lastError: null, lastErrorAgoMs: null, upstream: 'u', model: 'm' });
  health.ended(5, health.began(0), { ...failure, error: 'x'.repeat(10_000) });
  t.equal(health.status(7).lastError?.length, 200);
  t.equal(health.status(7).lastErrorAgoMs, 2);
});

test('new settings hold at once', async (t) => {
  const health = make();
  fail(health, 0, 3);
  health.setSettings({ ...quick, maxOpenMs: 30, openMs: 30 });
  t.equal(health.earliest(0), 30, 'open no longer than they allow');
  succeed(health, 30);
  health.setSettings({ ...quick, failures: 1000, windowMs: 100_000 });
  t.equal(health.status(30).calls, 0, 'another window begins empty');
  fail(health, 5000, 2);
  t.match(health.status(90_000), { calls: 2, failures: 2 });
});

type Step =
  | { readonly do: 'begin' }
  | { readonly do: 'answer'; readonly which: number }
  | {
      readonly do: 'end';
      readonly which: number;
      readonly outcome: number;
      readonly retryAfterMs: number | null;
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'settings'; readonly windowMs: number; readonly maxOpenMs: number };

const which = fc.nat(50);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('begin' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('answer' as const), which }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which,
      outcome: fc.nat(5),
      retryAfterMs: fc.option(fc.integer({ min: -10, max: 500 }), { freq: 6 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(250) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('settings' as const),
      windowMs: fc.integer({ min: 1, max: 2000 }),
      maxOpenMs: fc.integer({ min: 1, max: 1000 }),
    }),
  },
);

/** Takes the steps; `look` is called after each with the calls that are under way. */
function run(steps: readonly Step[], look: (health: TargetHealth, now: number, probes: number) => void) {
  const health = make();
  const calls: { readonly ticket: number; isProbe: boolean }[] = [];
  let now = 0;
  for (const each of steps) {
    if (each.do === 'begin') {
      const isProbe = health.mayTake(now) && health.status(now).state === 'half-open';
      calls.push({ ticket: health.began(now), isProbe });
    } else if (each.do === 'wait') now += each.ms;
    else if (each.do === 'settings')
      health.setSettings({ ...quick, windowMs: each.windowMs, maxOpenMs: each.maxOpenMs });
    else if (calls.length > 0) {
      const index = each.which % calls.length;
      const call = calls[index] as (typeof calls)[number];
      if (each.do === 'answer') {
        health.answered(call.ticket);
        call.isProbe = false;
      } else {
        calls.splice(index, 1);
        const { retryAfterMs } = each;
        const failed: FailedOutcome = { ...(each.outcome === 0 ? limited : failure), retryAfterMs };
        const kind = each.outcome;
        health.ended(now, call.ticket, kind > 3 ? 'success' : kind === 3 ? 'uncounted' : failed);
      }
    }
    look(health, now, calls.filter(({ isProbe }) => isProbe).length);
  }
  return { health, now, left: calls };
}

const steps = fc.array(step, { maxLength: 150 });

test('never are two probes out, and no count is negative or wrong', async (t) => {
  fc.assert(
    fc.property(steps, (each) => {
      run(each, (health, now, probes) => {
        const status = health.status(now);
        if (probes > 1) throw new Error('two probes');
        if (probes === 1 && health.mayTake(now)) throw new Error('a place for another probe');
        if (status.failures < 0 || status.failures > status.calls) throw new Error('wrong counts');
        if (health.mayTake(now) !== (status.waitMs === 0)) throw new Error('another time than it says');
        if (!health.mayTake(health.earliest(now)) && probes === 0) throw new Error('not at the time it says');
      });
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

test('as many are in flight as have begun and not ended', async (t) => {
  fc.assert(
    fc.property(steps, (each) => {
      const { health, now, left } = run(each, () => {});
      if (health.inFlight !== left.length) return false;
      for (const { ticket } of left) health.ended(now, ticket, 'uncounted');
      return health.inFlight === 0;
    }),
    { numRuns: 200 },
  );
  t.pass();
});

test('after the longest time that it can be open, calls that succeed close it', async (t) => {
  fc.assert(
    fc.property(steps, (each) => {
      const { health, now, left } = run(each, () => {});
      for (const { ticket } of left) health.ended(now, ticket, 'success');
      // No retry-after of these steps and no open time is longer.
      const later = now + 1000;
      if (!health.mayTake(later)) return false;
      succeed(health, later);
      return health.status(later + restMs).state === 'closed' && health.mayTake(later);
    }),
    { numRuns: 200 },
  );
  t.pass();
});

test('the window counts what a plain list of calls counts', async (t) => {
  const call = fc.record({ afterMs: fc.nat(300), failed: fc.boolean() });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 100 }), fc.integer({ min: 10, max: 3000 }), (each, windowMs) => {
      const health = make({ windowMs, failures: 1e9, minimumCalls: 1e9 });
      const slotOf = (now: number) => Math.floor((now * 10) / windowMs);
      const seen: { readonly slot: number; readonly failed: boolean }[] = [];
      let now = 0;
      for (const { afterMs, failed } of each) {
        now += afterMs;
        health.ended(now, health.began(now), failed ? failure : 'success');
        seen.push({ slot: slotOf(now), failed });
        const inside = seen.filter(({ slot }) => slot > slotOf(now) - 10);
        const { calls, failures } = health.status(now);
        if (calls !== inside.length || failures !== inside.filter((one) => one.failed).length) return false;
      }
      return true;
    }),
    { numRuns: 100 },
  );
  t.pass();
});
