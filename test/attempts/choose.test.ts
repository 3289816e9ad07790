import assert from 'node:assert/strict';
import { test } from 'tap';
import { hashText } from '../../src/attempts/affinity.js';
import { anyTarget, type RouteRequest, TargetChooser } from '../../src/attempts/choose.js';
import { HealthTable } from '../../src/attempts/health.js';
import type { FailedOutcome } from '../../src/attempts/outcome.js';
import type { Target } from '../../src/config/types.js';
import { fc, randomOf } from '../support/seed.js';
import { makeTarget, namesOf, settings } from './targets.js';

const failure: FailedOutcome = { kind: 'failure', error: 'reset', retryAfterMs: null };
const limited: FailedOutcome = { kind: 'rateLimited', error: '429', retryAfterMs: null };

function setUp(change: Partial<typeof settings> = {}) {
  const health = new HealthTable({ ...settings, failures: 1, openMs: 100, ...change }, () => {});
  const chooser = new TargetChooser(health, randomOf(1));
  const begin = (target: Target, times = 1) => {
    for (let i = 0; i < times; i++) health.of(target).began(0);
  };
  const end = (target: Target, outcome: FailedOutcome, now = 0) =>
    health.of(target).ended(now, health.of(target).began(now), outcome);
  return { health, chooser, begin, end };
}

const withHash = (affinity: number): RouteRequest => ({ affinity, targetFilter: null });
const wishing = (wanted: string[], excluded: string[] = []): RouteRequest => ({
  affinity: null,
  targetFilter: { wanted, excluded },
});
const hashes = Array.from({ length: 4000 }, (_one, i) => hashText(0, `${i}`));

test("one target that is well gives the model's own list", async (t) => {
  const { chooser, end } = setUp();
  const targets = [makeTarget('a')];
  t.equal(chooser.choose(targets, anyTarget, 0), targets);
  t.equal(chooser.choose(targets, withHash(1), 0), targets);
  end(targets[0] as Target, failure);
  t.same(chooser.choose(targets, anyTarget, 99), []);
  t.equal(chooser.retryAt(targets, anyTarget, 0), 100);
  t.equal(chooser.choose(targets, anyTarget, 100), targets);
  t.same(chooser.choose([], anyTarget, 0), []);
});

test("a model's list is never changed", async (t) => {
  const { chooser } = setUp();
  const targets = Object.freeze(['a', 'b', 'c'].map((name) => makeTarget(name)));
  for (const hash of hashes.slice(0, 50)) {
    chooser.choose(targets, withHash(hash), 0);
    chooser.choose(targets, anyTarget, 0);
  }
  t.equal(namesOf(targets), 'abc');
});

test('lower priorities come first, with a hash and without', async (t) => {
  const { chooser, begin } = setUp();
  const targets = [
    makeTarget('a', { weight: 1 }),
    makeTarget('b', { priority: 1, weight: 100 }),
    makeTarget('c', { priority: 7 }),
  ];
  begin(targets[0] as Target, 50);
  for (const hash of hashes.slice(0, 100)) {
    t.equal(namesOf(chooser.choose(targets, withHash(hash), 0)), 'abc');
    t.equal(namesOf(chooser.choose(targets, anyTarget, 0)), 'abc');
  }
});

test('what is ill or asked to be left alone is left out, and a half-open one has its place', async (t) => {
  const { chooser, end, health } = setUp();
  const [a, b, c] = [0, 1, 2].map((priority) => makeTarget('abc'[priority] as string, { priority })) as [
    Target,
    Target,
    Target,
  ];
  const targets = [a, b, c];
  end(a, failure);
  end(b, { ...limited, retryAfterMs: 300 });
  t.equal(namesOf(chooser.choose(targets, anyTarget, 0)), 'c');
  t.equal(namesOf(chooser.choose(targets, anyTarget, 100)), 'ac');
  const probe = health.of(a).began(100);
  t.equal(namesOf(chooser.choose(targets, anyTarget, 100)), 'c');
  health.of(a).ended(100, probe, 'success');
  t.equal(namesOf(chooser.choose(targets, anyTarget, 300)), 'abc');
});

test('one that merely rests comes last, and stands in when nothing else is left', async (t) => {
  const { chooser, end } = setUp();
  const [a, b] = [makeTarget('a'), makeTarget('b', { priority: 1 })] as const;
  end(a, limited);
  t.equal(namesOf(chooser.choose([a, b], anyTarget, 0)), 'ba');
  t.equal(namesOf(chooser.choose([a, b], withHash(3), 0)), 'ba');
  end(b, failure);
  t.equal(namesOf(chooser.choose([a, b], anyTarget, 0)), 'a');
  t.equal(namesOf(chooser.choose([a], anyTarget, 0)), 'a');
});

test('when nothing is left, the earliest time of any is told', async (t) => {
  const { chooser, end } = setUp();
  const targets = [makeTarget('a'), makeTarget('b'), makeTarget('c', { priority: 1 })];
  end(targets[0] as Target, { ...failure, retryAfterMs: 900 });
  end(targets[1] as Target, { ...limited, retryAfterMs: 400 });
  end(targets[2] as Target, { ...failure, retryAfterMs: 700 });
  t.same(chooser.choose(targets, anyTarget, 10), []);
  t.equal(chooser.retryAt(targets, anyTarget, 10), 400);
  t.equal(chooser.retryAt(targets, wishing([], ['b']), 10), 700);
  t.equal(chooser.retryAt(targets, wishing(['z']), 10), Number.POSITIVE_INFINITY);
});

test('a target filter restricts, also to nothing', async (t) => {
  const { chooser, end } = setUp();
  const a = makeTarget('a', { model: 'x' });
  const targets = [a, makeTarget('a', { model: 'y', priority: 1 }), makeTarget('b', { priority: 2 })];
  const models = (request: RouteRequest) =>
    chooser.choose(targets, request, 0).map(({ upstream, model }) => `${upstream.name}/${model}`);
  t.same(models(wishing(['a'])), ['a/x', 'a/y']);
  t.same(models(wishing(['a'], ['a/x'])), ['a/y']);
  t.same(models(wishing([], ['a'])), ['b/m']);
  t.same(models(wishing(['b', 'a/y'])), ['a/y', 'b/m']);
  t.same(models(wishing(['c'])), []);
  t.same(chooser.choose([a], wishing(['b']), 0), []);
  end(a, failure);
  t.same(models(wishing(['a/x'])), [], 'what is wanted is asked no sooner for it');
});

test('with a hash, calls that begin alike go together and all targets share the others', async (t) => {
  const { chooser } = setUp();
  const targets = [makeTarget('a', { weight: 3 }), makeTarget('b', { weight: 1 })];
  let first = 0;
  for (const hash of hashes) {
    const order = namesOf(chooser.choose(targets, withHash(hash), 0));
    assert.equal(namesOf(chooser.choose(targets, withHash(hash), 5)), order);
    if (order === 'ab') first++;
  }
  t.ok(Math.abs(first / hashes.length - 0.75) < 0.04, `${first}`);
});

test('a full target comes after the others of its priority and before the next priority', async (t) => {
  const { chooser, begin } = setUp({ loadFactor: 1.25 });
  const targets = [makeTarget('a'), makeTarget('b'), makeTarget('c', { priority: 1 })];
  const hash = hashes.find((each) => chooser.choose(targets, withHash(each), 0)[0] === targets[0]) as number;
  const order = () => namesOf(chooser.choose(targets, withHash(hash), 0));
  const orders = Array.from({ length: 7 }, () => {
    const now = order();
    begin(targets[0] as Target);
    return now;
  });
  t.same(orders, ['abc', 'abc', 'abc', 'abc', 'abc', 'bac', 'bac']);
  begin(targets[1] as Target, 7);
  t.equal(order(), 'abc', 'it is full only beside the others');
});

test('bounded load: no target has more than its bound, whatever the hashes and the weights', async (t) => {
  const weights = fc.array(fc.integer({ min: 1, max: 10 }), { minLength: 2, maxLength: 6 });
  const calls = fc.array(fc.nat(3), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(weights, calls, fc.double({ min: 1, max: 3, noNaN: true }), (each, prompts, loadFactor) => {
      const { chooser, health } = setUp({ loadFactor });
      const targets = each.map((weight, i) => makeTarget(`t${i}`, { weight }));
      const total = each.reduce((sum, weight) => sum + weight, 0);
      let inFlight = 0;
      for (const prompt of prompts) {
        const [target] = chooser.choose(targets, withHash(hashText(1, `${prompt}`)), 0) as [Target];
        health.of(target).began(0);
        inFlight++;
        const bound = 1 + Math.ceil((loadFactor * inFlight * target.weight) / total + 1e-9);
        if (health.of(target).inFlight > bound) return false;
      }
      return true;
    }),
    { numRuns: 100 },
  );
  t.pass();
});

test('without a hash, calls one after the other follow the weights', async (t) => {
  const { chooser } = setUp();
  const targets = [1, 2, 5].map((weight) => makeTarget(`${weight}`, { weight }));
  const first = new Map<string, number>();
  const second = new Map<string, number>();
  const calls = 16_000;
  for (let i = 0; i < calls; i++) {
    const [one, two] = chooser.choose(targets, anyTarget, 0) as [Target, Target, Target];
    first.set(one.upstream.name, (first.get(one.upstream.name) ?? 0) + 1);
    if (one === targets[2]) second.set(two.upstream.name, (second.get(two.upstream.name) ?? 0) + 1);
  }
  for (const { upstream, weight } of targets)
    t.ok(Math.abs((first.get(upstream.name) ?? 0) / calls - weight / 8) < 0.02, upstream.name);
  t.ok(Math.abs((second.get('2') ?? 0) / (first.get('5') ?? 1) - 2 / 3) < 0.02, 'those behind as well');
});

test('without a hash, the second draw prefers what has less under way for its weight', async (t) => {
  const { chooser, begin } = setUp();
  const targets = [makeTarget('a', { weight: 2 }), makeTarget('b', { weight: 2 }), makeTarget('c')];
  begin(targets[0] as Target, 6);
  begin(targets[1] as Target, 2);
  begin(targets[2] as Target, 2);
  const first = { a: 0, b: 0, c: 0 };
  const calls = 20_000;
  for (let i = 0; i < calls; i++)
    first[namesOf(chooser.choose(targets, anyTarget, 0).slice(0, 1)) as 'a' | 'b' | 'c']++;
  // Of two draws with 0.4, 0.4 and 0.2: a is first only when both are a; b whenever it is drawn; c beside a or itself.
  t.ok(Math.abs(first.a / calls - 0.16) < 0.02, `${first.a}`);
  t.ok(Math.abs(first.b / calls - 0.64) < 0.02, `${first.b}`);
  t.ok(Math.abs(first.c / calls - 0.2) < 0.02, `${first.c}`);
});

test('without a hash, calls under way stay near the weights, and one of little weight is not overrun', async (t) => {
  const { chooser, health } = setUp();
  const targets = [1, 2, 5].map((weight) => makeTarget(`${weight}`, { weight }));
  for (let i = 0; i < 800; i++) health.of(chooser.choose(targets, anyTarget, 0)[0] as Target).began(0);
  for (const target of targets) {
    const due = target.weight * 100;
    const { inFlight } = health.of(target);
    t.ok(Math.abs(inFlight - due) <= 30, `${inFlight} of ${due}`);
  }
  const canary = setUp();
  const pair = [makeTarget('main', { weight: 99 }), makeTarget('canary', { weight: 1 })] as const;
  canary.begin(pair[0], 5);
  let taken = 0;
  for (let i = 0; i < 5000; i++) if (canary.chooser.choose(pair, anyTarget, 0)[0] === pair[1]) taken++;
  t.ok(taken < 5000 * 0.03, `${taken}`);
});

test('weights of nothing still leave every target in the list', async (t) => {
  const { chooser } = setUp();
  const targets = [makeTarget('a', { weight: 0 }), makeTarget('b', { weight: 0 })];
  for (const request of [anyTarget, withHash(9)]) t.equal(chooser.choose(targets, request, 0).length, 2);
});

test('the list holds exactly the targets that may be taken, by priority, each once', async (t) => {
  const kinds = fc.array(
    fc.record({
      ill: fc.boolean(),
      resting: fc.boolean(),
      priority: fc.nat(3),
      weight: fc.nat(5),
      calls: fc.nat(9),
    }),
    { minLength: 1, maxLength: 7 },
  );
  fc.assert(
    fc.property(kinds, fc.option(fc.integer()), (each, affinity) => {
      const { chooser, health, begin, end } = setUp();
      const sorted = [...each].sort((x, y) => x.priority - y.priority);
      const targets = sorted.map((one, i) => makeTarget(`t${i}`, one));
      for (const [i, one] of sorted.entries()) {
        const target = targets[i] as Target;
        begin(target, one.calls);
        if (one.resting) end(target, limited);
        if (one.ill) end(target, failure);
      }
      const chosen = chooser.choose(targets, { affinity, targetFilter: null }, 0);
      const due = targets.filter((target) => health.of(target).mayTake(0));
      const ranks = chosen.map((target) => target.priority + (health.of(target).isResting(0) ? 100 : 0));
      return (
        chosen.length === due.length &&
        due.every((target) => chosen.includes(target)) &&
        ranks.every((rank, i) => i === 0 || rank >= (ranks[i - 1] as number))
      );
    }),
    { numRuns: 200 },
  );
  t.pass();
});
