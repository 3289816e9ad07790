import { test } from 'tap';
import { labelOf, readSumId, sumId } from '../../src/usage/sums.js';
import { fc } from '../support/seed.js';

const names = fc.option(
  fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', maxLength: 400 })),
);

test('labels come back from an id, which is short enough for any store', async (t) => {
  fc.assert(
    fc.property(names, names, (keyId, model) => {
      const id = sumId({ day: '2026-03-09', keyId, model });
      const read = readSumId(id);
      return Buffer.byteLength(id) <= 500 && read?.keyId === labelOf(keyId) && read?.model === labelOf(model);
    }),
  );
  t.same(readSumId(sumId({ day: '2026-03-09', keyId: 'a/ä%', model: '' })), {
    day: '2026-03-09',
    keyId: 'a/ä%',
    model: '',
  });
});

test('long names stay apart, and begin as they are', async (t) => {
  const [a, b] = ['a', 'b'].map((end) => labelOf(`model-${'€'.repeat(300)}${end}`));
  t.not(a, b);
  t.match(a, /^model-€+~[0-9a-f]{32}$/);
  t.equal(labelOf('short'), 'short');
  t.equal(labelOf(null), null);
});

test('halves of characters do no harm', async (t) => {
  t.equal(labelOf('\ud800x'), '\ufffdx');
});

test('an id that is none of these is not read', async (t) => {
  for (const id of ['', 'a', 'a/b', 'a/b/c/d', '2026-03-09/n%/n', '2026-03-09/n%E2%82/n'])
    t.equal(readSumId(id), null, id);
});
