import { test } from 'tap';
import { HealthTable } from '../../src/attempts/health.js';
import type { AttemptOutcome } from '../../src/attempts/outcome.js';
import { atOnce } from '../../src/wire/steps.js';
import { makeTarget, makeUpstream, settings } from './targets.js';

test('targets of two models and of two configs share their health', async (t) => {
  const table = new HealthTable(settings, () => {});
  const health = table.of(makeTarget('a', { priority: 0 }));
  t.equal(table.of(makeTarget('a', { priority: 1 })), health);
  const reloaded = makeTarget('a');
  atOnce(table.retainSteps([reloaded], settings));
  t.equal(table.of(reloaded), health);
  t.not(table.of(makeTarget('a', { model: 'other' })), health);
  t.not(table.of(makeTarget('b')), health);
});

test('names with slashes are not mixed up', async (t) => {
  const table = new HealthTable(settings, () => {});
  t.not(table.of(makeTarget('a/b', { model: 'c' })), table.of(makeTarget('a', { model: 'b/c' })));
});

test('what no config has is forgotten, while calls of the one before keep theirs', async (t) => {
  const table = new HealthTable(settings, () => {});
  const a = makeTarget('a');
  const b = makeTarget('b');
  atOnce(table.retainSteps([a, b], settings));
  const health = table.of(b);
  const ticket = health.began(0);
  atOnce(table.retainSteps([a], settings));
  t.same(
    [...table.status(0)].map(({ upstream }) => upstream),
    ['a'],
  );
  t.equal(table.of(b), health);
  health.ended(0, ticket, 'success');
  const again = makeTarget('b');
  atOnce(table.retainSteps([a, again], settings));
  t.not(table.of(again), health);
});

test('an upstream that has moved or has other keys begins anew', async (t) => {
  for (const change of [{ host: 'elsewhere' }, { apiKeys: ['another'] }, { apiKeys: ['key', 'two'] }]) {
    const table = new HealthTable(settings, () => {});
    const before = makeTarget('a');
    atOnce(table.retainSteps([before], settings));
    const health = table.of(before);
    const after = makeTarget(makeUpstream('a', change));
    const latecomer = makeTarget('a');
    // Before it is the running config's, it leaves alone what is.
    t.not(table.of(after), health);
    t.equal(table.of(before), health);
    atOnce(table.retainSteps([after], settings));
    const fresh = table.of(after);
    t.not(fresh, health);
    t.equal(table.of(makeTarget(makeUpstream('a', change))), fresh);
    t.not(table.of(latecomer), fresh, 'a call of the config before meets its target late');
    t.equal([...table.status(0)].length, 1);
  }
});

test('settings reach every target, and those that come later', async (t) => {
  const table = new HealthTable(settings, () => {});
  const early = table.of(makeTarget('a'));
  atOnce(table.retainSteps([makeTarget('a')], { ...settings, failures: 1 }));
  t.equal(table.settings.failures, 1);
  for (const health of [early, table.of(makeTarget('b'))]) {
    health.ended(0, health.began(0), { kind: 'failure', error: 'reset', retryAfterMs: null });
    t.notOk(health.mayTake(0));
  }
});

test('who is told of breakers hears of the end of good and of bad times, and of no probe between', async (t) => {
  const heard: object[] = [];
  const table = new HealthTable({ ...settings, failures: 2, openMs: 100, maxOpenMs: 100 }, (target, change) =>
    heard.push({ upstream: target.upstream, model: target.model, ...change }),
  );
  const health = table.of(makeTarget('a', { model: 'm' }));
  const end = (now: number, outcome: AttemptOutcome): void => health.ended(now, health.began(now), outcome);
  const reset: AttemptOutcome = { kind: 'failure', error: 'reset', retryAfterMs: null };
  end(0, reset);
  t.strictSame(heard, [], 'one failure is none');
  end(0, reset);
  const opened = { upstream: 'a', model: 'm', isOpen: true, lastError: 'reset', openMs: 100 };
  t.strictSame(heard, [opened]);
  end(100, reset);
  t.strictSame(heard, [opened], 'the probe fails');
  end(200, 'success');
  end(200, 'success');
  t.strictSame(heard, [opened, { ...opened, isOpen: false, openMs: 0 }]);
});

test('calls that began some configs ago share the health of their target with those of today', async (t) => {
  const table = new HealthTable(settings, () => {});
  const first = makeTarget('a');
  const health = table.of(first);
  for (let config = 0; config < 3; config++) {
    const target = makeTarget('a');
    atOnce(table.retainSteps([target], settings));
    t.equal(table.of(target), health);
    t.equal(table.of(first), health);
  }
});

test('a target that is in no config any more keeps its health for the calls of its time, and is not listed', async (t) => {
  const table = new HealthTable(settings, () => {});
  const gone = makeTarget('gone');
  const health = table.of(gone);
  for (let config = 0; config < 5; config++) {
    atOnce(table.retainSteps([makeTarget('a')], settings));
    t.equal(table.of(gone), health);
    t.notOk([...table.status(0)].some(({ model, upstream }) => `${upstream}${model}`.includes('gone')));
  }
});
