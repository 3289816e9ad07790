import { test } from 'tap';
import { inspectTargets, type TargetFacts } from '../../src/metrics/inspection.js';

const now = 1_700_000_000_000;
const ago = (ms: number) => now - ms;

function facts(model: string, given: Partial<TargetFacts> = {}): TargetFacts {
  return { upstream: 'up', model, state: 'closed', lastError: null, lastErrorAgoMs: null, ...given };
}

test('a target is told with its state and its last failure', async (t) => {
  const failed = facts('b', { state: 'open', lastError: 'status 503', lastErrorAgoMs: 1500 });
  t.strictSame(inspectTargets([facts('a'), failed], ago), [
    { name: 'up/a', state: 'closed', lastFailure: null },
    { name: 'up/b', state: 'open', lastFailure: { at: now - 1500, message: 'status 503' } },
  ]);
});

test('of very many targets, those with something to tell are told', async (t) => {
  const many = Array.from({ length: 2000 }, (_, i) => facts(`m${i}`));
  const told = inspectTargets(
    [...many, facts('open', { state: 'open' }), facts('failed', { lastError: 'reset', lastErrorAgoMs: 1 })],
    ago,
  );
  t.equal(told.length, 500);
  t.same(
    told.slice(0, 3).map(({ name }) => name),
    ['up/open', 'up/failed', 'up/m0'],
  );
});
