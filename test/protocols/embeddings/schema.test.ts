import { test } from 'tap';
import { embeddingsRequest, engineEmbeddingsRequest } from '../../../src/protocols/embeddings/index.js';
import { type Refused, refuses, takes } from '../verdicts.js';

const body = (more: object = {}) => ({ model: 'm', input: 'hello', ...more });

test('every form of input and every documented member is accepted, and members unknown here', async (t) => {
  const inputs = ['a', ['a', 'b'], [1, 2], [[1], [2, 3]], new Array(2048).fill('a'), new Array(5000).fill(7)];
  for (const input of inputs) takes(t, embeddingsRequest, body({ input }));
  for (const encoding_format of ['float', 'base64', null])
    takes(t, embeddingsRequest, body({ encoding_format, dimensions: 1, user: 'u', input_type: 'query' }));
  takes(t, embeddingsRequest, body({ dimensions: null, user: null }));
});

test('with the model in the path the body needs none', async (t) => {
  takes(t, engineEmbeddingsRequest, { input: 'a' });
  takes(t, engineEmbeddingsRequest, { input: ['a'], model: 'm' });
  refuses(t, engineEmbeddingsRequest, [{}, 'input', "Missing required parameter 'input'"]);
});

test('a conversation may stand in place of the input, as vLLM has it, and is its upstream’s to judge', async (t) => {
  const messages = [{ role: 'user', content: 'a' }];
  t.ok(embeddingsRequest.check({ model: 'm', messages }));
  t.ok(engineEmbeddingsRequest.check({ messages }));
  takes(t, embeddingsRequest, body({ messages: null }));
  t.ok(embeddingsRequest.check({ model: 'm', messages: null }));
  for (const { guard } of [embeddingsRequest, engineEmbeddingsRequest]) {
    for (const members of ['"messages":[],"messages":[]', '"input":"a","messages":[],"Messages":[]'])
      t.doesNotThrow(() => guard.look(Buffer.from(`{${members}}`), 0), members);
    t.throws(() => guard.look(Buffer.from('{"input":"a","Input":"b"}'), 0), /input/i);
  }
});

const refused: readonly Refused[] = [
  [{ input: 'x' }, 'model', "Missing required parameter 'model'"],
  [{ model: 'm' }, 'input', "Missing required parameter 'input'"],
  [{ model: 'm', query: 'q', documents: ['a'] }, 'documents', 'POST /v1/rerank'],
  [null, null, 'the request body'],
];
for (const one of refused) {
  test(`refused with its place: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) =>
    refuses(t, embeddingsRequest, one));
}
