import { test } from 'tap';
import { createRounds } from '../../src/supervisor/workers.js';

test('a round ends with the last of its members, each of whom counts once', async (t) => {
  const rounds = createRounds<string>();
  let hasEnded = false;
  const round = rounds.begin(['a', 'b']).then((problem) => {
    hasEnded = true;
    return problem;
  });
  rounds.confirm('a');
  rounds.confirm('a');
  rounds.confirm('stranger');
  await null;
  t.equal(hasEnded, false);
  rounds.confirm('b');
  t.equal(await round, null);
  t.equal(rounds.number, 1);
});

test('a round without members has ended', async (t) => {
  t.equal(await createRounds<string>().begin([]), null);
});

test('a round tells the first problem of its members, and not one of a round before', async (t) => {
  const rounds = createRounds<string>();
  const first = rounds.begin(['a', 'b', 'c']);
  rounds.confirm('a');
  rounds.confirm('b', 'no room');
  rounds.confirm('c', 'no time');
  t.equal(await first, 'no room');
  const second = rounds.begin(['a']);
  rounds.confirm('a', null);
  t.equal(await second, null);
});

test('a round takes the place of the one before, and with its end both have ended', async (t) => {
  const rounds = createRounds<string>();
  const ended: string[] = [];
  const first = rounds.begin(['a', 'b']).then(() => ended.push('first'));
  const second = rounds.begin(['a']).then(() => ended.push('second'));
  rounds.confirm('b');
  await null;
  t.strictSame(ended, []);
  rounds.confirm('a');
  await Promise.all([first, second]);
  t.strictSame(ended, ['first', 'second']);
  t.equal(rounds.number, 2);
});
