import { test } from 'tap';
import { createRounds } from '../../src/supervisor/rounds.js';

test('a round ends with the last of its members, each of whom counts once', async (t) => {
  let ends = 0;
  const rounds = createRounds<string>(() => {
    ends += 1;
  });
  const round = rounds.begin(['a', 'b']);
  rounds.confirm('a');
  rounds.confirm('a');
  rounds.confirm('stranger');
  t.equal(ends, 0);
  rounds.confirm('b');
  t.equal(ends, 1);
  await round;
  t.equal(rounds.number, 1);
});

test('a round without members has ended, and nobody hears of it', async (t) => {
  await createRounds(() => t.fail('nothing was confirmed')).begin([]);
});

test('a round takes the place of the one before, and with its end both have ended', async (t) => {
  const rounds = createRounds<string>(() => {});
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
