import { test } from 'tap';
import { cutVectors } from '../../../src/protocols/embeddings/index.js';

const cut = (text: string) => cutVectors(Buffer.from(text), Buffer.from('"values"'));

test('vectors are taken out of an answer as they are written, and what is like one stays', async (t) => {
  const { rest, vectors } = cut(
    '{"embeddings":[{"values":[1, -2.5e-3]},{"values" : []},{"values":{"values":[3]}}],"x":"\\"values\\":[9]"}',
  );
  t.strictSame(
    vectors.map((vector) => vector.toString()),
    ['[1, -2.5e-3]', '[]', '[3]'],
  );
  t.strictSame(rest, {
    embeddings: [{ values: 0 }, { values: 1 }, { values: { values: 2 } }],
    x: '"values":[9]',
  });
});

test('a list of something else, one that does not end, and what is no JSON are refused', async (t) => {
  for (const text of ['{"values":["a"]}', '{"values":[[1]]}', '{"values":[1', '{"values":[1]', 'values', ''])
    t.throws(() => cut(text), /something other than embeddings/, text);
});
