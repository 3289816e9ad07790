import { test } from 'tap';
import { atOnce, inSlices, type Steps, sortSteps, textInSlices } from '../../src/wire/steps.js';

/** Takes a millisecond for each step, and notes when each is done. */
function* slowSteps(count: number, onStep: () => void): Steps<number> {
  for (let done = 0; done < count; done++) {
    const end = performance.now() + 1;
    while (performance.now() < end);
    onStep();
    yield;
  }
  return count;
}

test('work is the same at once and in slices, and between slices all else has its turn', async (t) => {
  t.equal(atOnce(slowSteps(3, () => {})), 3);
  let turns = 0;
  const seen = new Set<number>();
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  t.equal(await inSlices(slowSteps(5, () => seen.add(turns))), 5);
  isDone = true;
  t.equal(seen.size, 5, 'no two of these steps were done in one turn');
});

test('a slice ends where a step says so', async (t) => {
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  const seen = new Set<number>();
  function* telling(): Steps<void> {
    for (let told = 0; told < 20; told++) {
      seen.add(turns);
      yield 'end of slice';
    }
  }
  await inSlices(telling());
  isDone = true;
  t.equal(seen.size, 20);
});

test('what a step throws, its caller hears', async (t) => {
  function* broken(): Steps<void> {
    yield;
    throw new Error('broken');
  }
  t.throws(() => atOnce(broken()), { message: 'broken' });
  await t.rejects(inSlices(broken()), { message: 'broken' });
});

test('texts in slices are the same texts', async (t) => {
  const texts = Array.from({ length: 50_000 }, (_, index) => `${index},`);
  const pieces: string[] = [];
  for await (const piece of textInSlices(texts)) pieces.push(piece);
  t.equal(pieces.join(''), texts.join(''));
  t.ok(
    pieces.every(({ length }) => length < 65_600),
    'none is long',
  );
});

test('of all works in slices one has its slice in a turn', async (t) => {
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  const seen = new Set<number>();
  const works = Array.from({ length: 10 }, () => inSlices(slowSteps(2, () => seen.add(turns))));
  t.same(await Promise.all(works), new Array(10).fill(2));
  isDone = true;
  t.equal(seen.size, 20, 'no two of these steps were done in one turn');
});

test('a list is sorted in steps as at once, those that are equal in their order', (t) => {
  for (const length of [0, 1, 127, 128, 129, 1000, 5001]) {
    const items = Array.from({ length }, (_, index) => ({ rank: (index * 7919) % 101, index }));
    const byRank = (a: { rank: number }, b: { rank: number }): number => a.rank - b.rank;
    const before = [...items];
    t.same(atOnce(sortSteps(items, byRank)), [...items].sort(byRank));
    t.same(items, before, 'the list itself is as it was');
  }
  t.end();
});
