import { test } from 'tap';
import { decodeStop, nameOfType, requireName, wholeOrNull, wrongValue } from '../../src/wire/json.js';

test('a refusal names the path', async (t) => {
  t.match(wrongValue('a[1].b', 'a string'), {
    status: 400,
    param: 'a[1].b',
    message: "Invalid value for 'a[1].b': expected a string.",
  });
});

test('a name is taken, and refused where it is empty or no text', async (t) => {
  t.equal(requireName({ name: 'f' }, 'a'), 'f');
  for (const name of [undefined, null, 5, ''])
    t.throws(() => requireName({ name }, 'a'), {
      name: 'GatewayError',
      kind: 'invalid_value',
      param: 'a.name',
    });
});

test('stop sequences are one or several', async (t) => {
  t.same(decodeStop('x'), ['x']);
  t.same(decodeStop(['x', '', null, 5, 'y']), ['x', 'y']);
  for (const none of [undefined, null, '', [], {}]) t.same(decodeStop(none), []);
});

test('numbers become whole', async (t) => {
  t.equal(wholeOrNull(40.5), 41);
  t.equal(wholeOrNull(0), 0);
  for (const none of [undefined, null, '5', Number.POSITIVE_INFINITY, 1e300])
    t.equal(wholeOrNull(none), null);
});

test('the word of a type is cut between characters', async (t) => {
  const face = '\u{1F600}';
  t.equal(nameOfType(face.repeat(40)), face.repeat(32));
  t.equal(nameOfType(`a${face.repeat(40)}`), `a${face.repeat(31)}`);
  t.equal(nameOfType('\uD83D'.repeat(2)), '\uD83D'.repeat(2), 'what is not cut stays');
});
