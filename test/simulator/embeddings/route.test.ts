import { test } from 'tap';
import { createClient, sdks } from '../../support/sdks/openai.js';
import { simulate } from '../../support/simulator.js';
import { post } from '../post.js';

const body = (more: object = {}) => ({ model: 'sim-embedding', input: 'the cat sat on the mat', ...more });
const vectorsOf = (text: string): readonly (readonly number[])[] =>
  JSON.parse(text).data.map(({ embedding }: { embedding: unknown }) => embedding);
const nearness = (one: readonly number[] = [], other: readonly number[] = []) =>
  one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);

test('an answer is a list of vectors of length one, in the order of the inputs', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/embeddings', body({ input: ['a cat', 'a dog'] }));
  t.equal(heard.status, 200);
  t.match(JSON.parse(heard.text), {
    object: 'list',
    data: [
      { object: 'embedding', index: 0, embedding: Array },
      { object: 'embedding', index: 1, embedding: Array },
    ],
    model: 'sim-embedding',
    usage: { prompt_tokens: 4, total_tokens: 4 },
  });
  for (const vector of vectorsOf(heard.text)) {
    t.equal(vector.length, 256);
    t.ok(Math.abs(nearness(vector, vector) - 1) < 1e-6);
  }
});

test('near texts are near, others are not, and the same text is the same', async (t) => {
  const simulator = await simulate(t);
  const input = [
    'the cat sat on the mat',
    'a cat was sitting on the mat',
    'quarterly revenue grew by nine percent',
    'the cat sat on the mat',
  ];
  const [cat, kitten, money, again] = vectorsOf(
    (await post(simulator, '/embeddings', body({ input, dimensions: 1024 }))).text,
  );
  t.strictSame(cat, again);
  t.ok(nearness(cat, kitten) > 0.4, `${nearness(cat, kitten)}`);
  t.ok(Math.abs(nearness(cat, money)) < 0.2, `${nearness(cat, money)}`);
});

test('every form of input has its vectors', async (t) => {
  const simulator = await simulate(t);
  for (const [input, count] of [
    ['!?', 1],
    [[1, 2, 3], 1],
    [[[1], [1, 2]], 2],
    [['a', 'b', 'c'], 3],
  ] as const) {
    const { text } = await post(simulator, '/embeddings', body({ input }));
    t.equal(vectorsOf(text).length, count, JSON.stringify(input));
  }
});

test('base64 holds the same singles as the numbers', async (t) => {
  const simulator = await simulate(t);
  const asked = { dimensions: 7 };
  const [numbers] = vectorsOf((await post(simulator, '/embeddings', body(asked))).text);
  const { text } = await post(simulator, '/embeddings', body({ ...asked, encoding_format: 'base64' }));
  const bytes = Buffer.from(JSON.parse(text).data[0].embedding, 'base64');
  t.strictSame(
    Array.from({ length: 7 }, (_, at) => bytes.readFloatLE(4 * at)),
    numbers,
  );
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string][] = [
    [{ input: 'a' }, 400, 'model'],
    [body({ model: 'sim-text' }), 404, 'model'],
    [{ model: 'sim-embedding' }, 400, 'input'],
    [body({ input: '' }), 400, 'input'],
    [body({ input: [] }), 400, 'input'],
    [body({ input: ['a', ''] }), 400, 'input[1]'],
    [body({ input: ['a', [1]] }), 400, 'input[1]'],
    [body({ input: [1, 'a'] }), 400, 'input[0]'],
    [body({ input: {} }), 400, 'input'],
    [body({ input: new Array(2049).fill('a') }), 400, 'input'],
    [body({ input: 'a'.repeat(40_000) }), 400, 'input'],
    [body({ dimensions: 0 }), 400, 'dimensions'],
    [body({ dimensions: 5000 }), 400, 'dimensions'],
    [body({ encoding_format: 'hex' }), 400, 'encoding_format'],
  ];
  for (const [sent, status, param] of refused) {
    const heard = await post(simulator, '/embeddings', sent);
    t.equal(heard.status, status, JSON.stringify(sent).slice(0, 100));
    t.match(JSON.parse(heard.text), { error: { type: 'invalid_request_error', param } });
  }
});

test('a fault is asked for by the first text, and does not change its vector', async (t) => {
  const simulator = await simulate(t);
  t.equal((await post(simulator, '/embeddings', body({ input: ['[[fault:status=503]] a'] }))).status, 503);
  const slow = await post(simulator, '/embeddings', body({ input: '[[fault:latency=1]] a' }));
  const plain = await post(simulator, '/embeddings', body({ input: 'a' }));
  t.strictSame(vectorsOf(slow.text), vectorsOf(plain.text));
});

for (const sdk of sdks) {
  test(`${sdk.name} reads vectors by its default, base64, and as numbers`, async (t) => {
    const simulator = await simulate(t);
    const { embeddings } = createClient(sdk, simulator, { baseURL: simulator.url });
    const usual = await embeddings.create(body({ dimensions: 12 }));
    const numbers = await embeddings.create(body({ dimensions: 12, encoding_format: 'float' }));
    t.equal(usual.data[0]?.embedding.length, 12);
    t.strictSame(Array.from(usual.data[0]?.embedding ?? []), numbers.data[0]?.embedding);
    await t.rejects(embeddings.create(body({ input: [] })), {
      status: 400,
      code: 'invalid_value',
      param: 'input',
    });
  });
}
