import { test } from 'tap';
import { clip, countTokens, firstTokens, pieces, words } from '../../../src/simulator/answer/tokens.js';
import {
  directiveOption,
  directiveValue,
  headerDirectives,
  textDirectives,
} from '../../../src/simulator/faults/directives.js';
import { fc } from '../../support/seed.js';

const text = fc.string({ unit: fc.constantFrom('a', 'é', '🙂', ' ', '\n', '漢'), maxLength: 120 });

test('words and pieces join to the text again and never cut a surrogate pair', async (t) => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 9 }), (whole, size) => {
      const cut = [words(whole), pieces(whole, size)];
      return cut.every(
        (parts) =>
          parts.join('') === whole &&
          (size === 1 || parts.every((part) => Buffer.from(part).toString() === part)),
      );
    }),
  );
  t.pass();
});

test('a clipped text is well formed and within its limit', async (t) => {
  fc.assert(
    fc.property(text, fc.nat(40), (whole, size) => {
      const clipped = clip(whole, size);
      return (
        whole.startsWith(clipped) && clipped.length <= size && Buffer.from(clipped).toString() === clipped
      );
    }),
  );
  t.equal(countTokens(firstTokens('a'.repeat(100), 7)), 7);
});

test('directives are read from the start of a text and from a header', async (t) => {
  const { directives, rest } = textDirectives(
    ' [[fault:status=429 retry-after=7]][[fault:drop]] Hi [[fault:x]]',
  );
  t.equal(rest, 'Hi [[fault:x]]');
  t.match(directives, [
    { name: 'status', value: '429' },
    { name: 'drop', value: '' },
  ]);
  t.equal(directives[0]?.options.get('retry-after'), '7');
  t.strictSame(
    headerDirectives('latency=2 ; hang after=1;').map((one) => one.source),
    ['latency=2', 'hang after=1'],
  );
  t.strictSame(headerDirectives(undefined), []);
  for (const written of ['flood=3', 'flood megabytes=3']) {
    const [flood] = headerDirectives(written);
    t.ok(flood);
    if (flood) {
      t.strictSame([directiveValue(flood, 'megabytes', 1), directiveOption(flood, 'event-bytes', 9)], [3, 9]);
    }
  }
});
