import assert from 'node:assert/strict';
import { test } from 'tap';
import { StopText } from '../../../src/conversation/fit/stop-sequences.js';
import { cases, fc } from '../../support/seed.js';

function read(sequences: readonly string[], ...pieces: string[]): [text: string, met: string | null] {
  const reader = new StopText(sequences);
  const text = pieces.map((piece) => reader.add(piece)).join('');
  return [text + (reader.met === null ? reader.end() : ''), reader.met];
}

test('no more is held back than what may be the beginning of a sequence', async (t) => {
  const text = new StopText(['</a>', 'STOP']);
  t.equal(text.add('x<'), 'x');
  t.equal(text.add('/b'), '</b');
  t.equal(text.add('</'), '');
  t.equal(text.end(), '</');
  t.equal(text.add('a>'), 'a>', 'what came before is another text');
  t.equal(text.met, null);
});

test('the first sequence that is whole is met', async (t) => {
  t.strictSame(read(['b'], 'ab', 'c'), ['a', 'b']);
  t.strictSame(read(['aXb', 'X'], 'aXb'), ['a', 'X']);
  t.strictSame(read(['b', 'ab'], 'xab'), ['x', 'ab'], 'of two that end at once the longer one');
  t.strictSame(read(['aab'], 'aaab'), ['a', 'aab']);
  t.strictSame(read(['\n\n'], 'a\n', '\nb'), ['a', '\n\n']);
});

test('wherever a text is cut, the same is met', async () => {
  const words = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 });
  const sequences = fc.array(
    fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 }),
    { minLength: 1, maxLength: 3 },
  );
  fc.assert(
    fc.property(sequences, fc.array(words, { maxLength: 4 }), (given, pieces) => {
      const whole = pieces.join('');
      const ends = given
        .filter((each) => whole.includes(each))
        .map((each) => ({ each, end: whole.indexOf(each) + each.length }));
      const first = Math.min(...ends.map(({ end }) => end));
      const [met = null] = ends
        .filter(({ end }) => end === first)
        .map(({ each }) => each)
        .sort((one, other) => other.length - one.length);
      const text = met === null ? whole : whole.slice(0, first - met.length);
      assert.deepEqual(read(given, ...pieces), [text, met]);
    }),
    { numRuns: cases(1000) },
  );
});
