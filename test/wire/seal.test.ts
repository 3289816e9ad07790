import { test } from 'tap';
import { createSealer } from '../../src/wire/seal.js';

const sealer = createSealer('a secret that is long enough to be one');

test('a sealed text comes back, and only with the same secret', async (t) => {
  for (const text of ['', 'plain', 'ä€😀\n"', 'x'.repeat(100_000)]) {
    const sealed = sealer.seal(text);
    t.match(sealed, /^[\w.-]+$/, 'it fits into a JSON string and a header');
    t.equal(sealer.open(sealed), text);
    t.equal(createSealer('a secret that is long enough to be one').open(sealed), text);
    t.equal(createSealer('another secret that is long enough too').open(sealed), null);
  }
  t.not(sealer.seal('same'), sealer.seal('same'));
});

test('what was changed or is not sealed at all does not open', async (t) => {
  const sealed = sealer.seal('summary');
  for (let at = 0; at < sealed.length - 1; at++) {
    const other = sealed[at] === 'A' ? 'B' : 'A';
    t.equal(sealer.open(sealed.slice(0, at) + other + sealed.slice(at + 1)), null, `character ${at}`);
  }
  for (let end = 0; end < sealed.length - 2; end++) t.equal(sealer.open(sealed.slice(0, end)), null);
  t.equal(sealer.open('gAAAA-of-someone-else'), null);
});

test('a text of an owner opens for nobody else, and one of nobody for everybody', async (t) => {
  const secret = 'a secret that is long enough to be one';
  const [one, other] = [createSealer(secret, 'one'), createSealer(secret, 'x'.repeat(5000))];
  t.equal(createSealer(secret, 'one').open(one.seal('summary')), 'summary');
  t.equal(other.open(other.seal('summary')), 'summary');
  t.equal(other.open(one.seal('summary')), null);
  t.equal(one.open(other.seal('summary')), null);
  t.equal(sealer.open(one.seal('summary')), null);
  t.equal(one.open(sealer.seal('summary')), 'summary', 'as earlier releases have sealed it');
});
