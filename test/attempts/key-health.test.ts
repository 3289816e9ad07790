import { test } from 'tap';
import { hashText } from '../../src/attempts/affinity.js';
import { KeyHealth, TargetHealth } from '../../src/attempts/health.js';
import { type FailedOutcome, restMs } from '../../src/attempts/outcome.js';
import { random, randomOf } from '../support/seed.js';
import { settings } from './targets.js';

const apiKeys = ['sk-one', 'sk-two', 'sk-three', 'sk-four'];
const hashes = Array.from({ length: 4000 }, (_one, i) => hashText(0, `${i}`));
const failed = (kind: FailedOutcome['kind'], retryAfterMs: number | null = null): FailedOutcome => ({
  kind,
  error: 'status',
  retryAfterMs,
});
const quick = { ...settings, openMs: 100, maxOpenMs: 400 };

test('a key is chosen by the hash, evenly, and one less moves only its own calls', async (t) => {
  const all = new KeyHealth(apiKeys);
  const left = apiKeys.filter((key) => key !== 'sk-two');
  const fewer = new KeyHealth(left);
  const counts = new Map<string, number>();
  for (const hash of hashes) {
    const key = apiKeys[all.choose(hash, random, 0)] as string;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (key !== 'sk-two' && left[fewer.choose(hash, random, 0)] !== key) t.fail('a call moved');
  }
  for (const key of apiKeys) t.ok(Math.abs((counts.get(key) ?? 0) / hashes.length - 0.25) < 0.03, key);
});

test('without a hash every key has its share', async (t) => {
  const keys = new KeyHealth(apiKeys);
  const random = randomOf(3);
  const counts = apiKeys.map(() => 0);
  for (let i = 0; i < 8000; i++) (counts[keys.choose(null, random, 0)] as number)++;
  for (const count of counts) t.ok(Math.abs(count / 8000 - 0.25) < 0.02, `${count}`);
});

test('a key that is not accepted is left alone, twice as long each time, and its calls go to the others', async (t) => {
  const keys = new KeyHealth(apiKeys);
  const own = hashes.find((hash) => keys.choose(hash, random, 0) === 1) as number;
  keys.refused(1, 0, failed('rejected'), quick);
  keys.refused(1, 50, failed('rejected'), quick);
  t.not(keys.choose(own, random, 99), 1, 'what was under way together is one refusal');
  t.equal(keys.choose(own, random, 100), 1);
  for (const [at, until] of [
    [100, 300],
    [300, 700],
    [700, 1100],
  ] as const) {
    keys.refused(1, at, failed('rejected'), quick);
    t.not(keys.choose(own, random, until - 1), 1);
    t.equal(keys.choose(own, random, until), 1);
  }
  keys.accepted(1);
  keys.refused(1, 2000, failed('rejected'), quick);
  t.equal(keys.choose(own, random, 2100), 1, 'it begins anew once it was accepted');
});

test('a key rests for as long as it is asked to, and shortly where nothing is said', async (t) => {
  const keys = new KeyHealth(['a', 'b']);
  keys.refused(0, 0, failed('rateLimited', 5000), quick);
  for (const hash of hashes.slice(0, 100)) t.equal(keys.choose(hash, random, 4999), 1);
  t.equal(keys.mayTake(4999), true);
  keys.refused(1, 0, failed('rateLimited'), quick);
  t.equal(keys.hasWell(restMs - 1), false);
  t.equal(keys.choose(1, random, restMs - 1), 1, 'one that merely rests is better than one that is barred');
  t.same(
    keys.status(0).map(({ waitMs }) => waitMs),
    [5000, restMs],
  );
  keys.refused(1, 0, failed('rateLimited', 3000), quick);
  t.equal(keys.mayTake(2999), false);
  t.equal(keys.earliest(0), 3000);
  t.equal(keys.choose(1, random, 0), 1, 'the one that is free first');
});

test('a target is ill only when all its keys are', async (t) => {
  const make = () => new TargetHealth('u', 'm', { ...quick, failures: 1 }, ['a', 'b'], () => {});
  const end = (health: TargetHealth, outcome: FailedOutcome, key: number) =>
    health.ended(0, health.began(0), outcome, key);
  for (const failure of [failed('rejected'), failed('rateLimited', 100)]) {
    const health = make();
    end(health, failure, 0);
    t.equal(health.mayTake(0), true);
    t.equal(health.isResting(0), false);
    t.match(health.status(0), { state: 'closed', failures: 0, keys: [{ waitMs: 100 }, { waitMs: 0 }] });
    end(health, failure, 1);
    t.equal(health.mayTake(99), false);
    t.equal(health.earliest(0), 100);
    t.match(health.status(0), { state: 'cooling', waitMs: 100 });
    t.equal(health.mayTake(100), true);
  }
  const doubted = make();
  end(doubted, failed('doubted'), 0);
  end(doubted, failed('doubted'), 1);
  t.equal(doubted.mayTake(0), true, 'what a caller may have brought about makes nothing ill');
  t.equal(doubted.isResting(0), true);
  const broken = make();
  end(broken, failed('failure'), 0);
  t.match(broken.status(0), { state: 'open', keys: [{ waitMs: 0 }, { waitMs: 0 }] });
});

test('the refusal of a probe with one key leaves its place to the next call', async (t) => {
  const health = new TargetHealth('u', 'm', { ...quick, failures: 1 }, ['a', 'b'], () => {});
  health.ended(0, health.began(0), failed('failure'), 0);
  const probe = health.began(100);
  t.equal(health.mayTake(100), false);
  health.ended(100, probe, failed('rejected'), 0);
  t.equal(health.mayTake(100), true);
});

test('with one key its refusals are those of the target', async (t) => {
  const health = new TargetHealth('u', 'm', { ...quick, failures: 1 }, ['a'], () => {});
  health.ended(0, health.began(0), failed('doubted'));
  t.equal(health.mayTake(0), true);
  health.ended(0, health.began(0), failed('rejected'));
  t.match(health.status(0), { state: 'open', keys: [] });
});
