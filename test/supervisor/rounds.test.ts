import { test } from 'tap';
import { Rounds } from '../../src/supervisor/rounds.js';
import { eventually } from '../support/eventually.js';

/** Begins a round with these members. */
function begin<Answer>(rounds: Rounds<string, Answer>, members: readonly string[], mostMs?: number) {
  let number = 0;
  let hasEnded = false;
  const outcome = rounds.begin((asked) => {
    number = asked;
    return members;
  }, mostMs);
  outcome.then(() => {
    hasEnded = true;
  });
  return {
    number,
    outcome,
    async hasEnded() {
      await new Promise((resolve) => setImmediate(resolve));
      return hasEnded;
    },
  };
}

test('a round ends with the last of its members, each of whom counts once', async (t) => {
  const rounds = new Rounds<string, number>();
  const { number, outcome, hasEnded } = begin(rounds, ['a', 'b']);
  rounds.onAnswer('a', number, 1);
  rounds.onAnswer('a', number, 7);
  rounds.onAnswer('stranger', number, 8);
  t.equal(await hasEnded(), false);
  rounds.onAnswer('b', number, 2);
  t.strictSame(await outcome, { number, answers: [1, 2], missing: [] });
  rounds.onAnswer('b', number, 9);
  t.strictSame((await outcome).answers, [1, 2]);
});

test('a round without members has ended', async (t) => {
  const { number, outcome } = begin(new Rounds<string, null>(), []);
  t.strictSame(await outcome, { number, answers: [], missing: [] });
});

test('a member that is gone is not waited for', async (t) => {
  const rounds = new Rounds<string, number>();
  const { number, outcome } = begin(rounds, ['a', 'b']);
  rounds.onGone('stranger');
  rounds.onGone('b');
  rounds.onAnswer('a', number, 1);
  t.strictSame(await outcome, { number, answers: [1], missing: [] });
});

test('an answer to a later round ends those before, and not the other way round', async (t) => {
  const rounds = new Rounds<string, string>();
  const first = begin(rounds, ['a', 'b']);
  const second = begin(rounds, ['b', 'c']);
  rounds.onAnswer('a', first.number, 'first');
  rounds.onAnswer('c', second.number, 'third');
  rounds.onAnswer('b', 0, 'of no round');
  t.strictSame([await first.hasEnded(), await second.hasEnded()], [false, false]);
  rounds.onAnswer('b', second.number, 'second');
  t.strictSame((await first.outcome).answers, ['first', 'second']);
  t.strictSame((await second.outcome).answers, ['third', 'second']);
});

test('what is asked later is not waited for', async (t) => {
  const rounds = new Rounds<string, null>();
  const first = begin(rounds, ['a']);
  const second = begin(rounds, ['a']);
  rounds.onAnswer('a', first.number, null);
  t.strictSame([await first.hasEnded(), await second.hasEnded()], [true, false]);
});

test('members that do not answer in time are named, and hold nobody up', async (t) => {
  const rounds = new Rounds<string, number>();
  const { number, outcome, hasEnded } = begin(rounds, ['a', 'b', 'c'], 5);
  rounds.onAnswer('b', number, 2);
  await eventually(hasEnded);
  t.strictSame(await outcome, { number, answers: [2], missing: ['a', 'c'] });
});
