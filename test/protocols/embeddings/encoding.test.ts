import { test } from 'tap';
import { embeddings } from '../../../src/protocols/embeddings/index.js';
import { fc } from '../../support/seed.js';

type Amender = (answer: Buffer) => Buffer;

const amenderOf = (format: object): Amender =>
  embeddings.amender?.(Buffer.from(JSON.stringify({ model: 'm', input: 'x', ...format }))) as Amender;
const toBase64 = amenderOf({ encoding_format: 'base64' });
const toFloats = amenderOf({});

const base64 = (numbers: readonly number[]) =>
  Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
const answer = (...vectors: unknown[]) => ({
  id: 'embd-1',
  object: 'list',
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  model: 'm',
  usage: { prompt_tokens: 5, total_tokens: 5 },
});
const bytes = (value: unknown, space = 0) => Buffer.from(JSON.stringify(value, null, space));
const parse = (buffer: Buffer) => JSON.parse(buffer.toString());

test('numbers become base64 where base64 was asked for, and nothing else changes', async (t) => {
  const vectors = [
    [0.5, -0.25, 0.1],
    [1, 2, 3e-9],
  ];
  for (const space of [0, 2])
    t.strictSame(parse(toBase64(bytes(answer(...vectors), space))), answer(...vectors.map(base64)));
  const odd = Buffer.from('{"x":1.0,"data":[{"embedding" : [1] ,"é":"\\u00e9"}],"usage":{}}  ');
  t.equal(
    toBase64(odd).toString(),
    '{"x":1.0,"data":[{"embedding" : "AACAPw==" ,"é":"\\u00e9"}],"usage":{}}  ',
  );
});

test('base64 becomes numbers where numbers were asked for, or nothing was said', async (t) => {
  const vectors = [[0.5, -0.25, 0.1], [-3e-9]];
  const singles = vectors.map((vector) => vector.map(Math.fround));
  for (const format of [{}, { encoding_format: 'float' }, { encoding_format: null }])
    t.strictSame(parse(amenderOf(format)(bytes(answer(...vectors.map(base64))))), answer(...singles));
  const escaped = bytes(answer('PLACE')).toString().replace('PLACE', '\\/\\/9\\/fw==');
  t.strictSame(parse(toFloats(Buffer.from(escaped))), answer([3.4028234663852886e38]));
});

test('an answer that is right already is the same buffer', async (t) => {
  for (const [amend, vector] of [
    [toBase64, 'AACAPw=='],
    [toFloats, [1, 2]],
  ] as const) {
    const right = bytes(answer(vector, vector));
    t.equal(amend(right), right);
    for (const other of [
      answer(),
      {},
      { embedding: null },
      { embedding: {} },
      'embedding',
      ['embedding', 1],
    ]) {
      const buffer = bytes(other);
      t.equal(amend(buffer), buffer, JSON.stringify(other));
    }
  }
});

test('an answer with numbers has the id that the clients of Mistral require', async (t) => {
  const { id: _, ...nameless } = answer([1, 2]);
  for (const space of [0, 2]) {
    const { id, ...others } = parse(toFloats(bytes(nameless, space)));
    t.match(id, /^embd-[0-9a-f-]{36}$/);
    t.strictSame(others, nameless);
  }
});

test('what cannot be put into the other form stays as it came', async (t) => {
  for (const vector of [[[1, 2]], [null], ['a']]) {
    const buffer = bytes(answer(vector));
    t.equal(toBase64(buffer), buffer, JSON.stringify(vector));
  }
  for (const text of ['AAA=', base64([Number.NaN]), base64([Number.POSITIVE_INFINITY])]) {
    const buffer = bytes(answer(text));
    t.equal(toFloats(buffer), buffer, text);
  }
  const mixed = toBase64(bytes(answer([1], 'AACAPw==', [[1]], [2])));
  t.strictSame(parse(mixed), answer('AACAPw==', 'AACAPw==', [[1]], 'AAAAQA=='));
});

test('cut or odd bytes are survived', async (t) => {
  for (const text of ['{"embedding":', '{"embedding":[1', '{"embedding":"AA', '"embedding"', ''])
    for (const amend of [toBase64, toFloats]) t.equal(amend(Buffer.from(text)).toString(), text);
});

test('the format is that of the top-level member, not of words in the input', async (t) => {
  const words = embeddings.amender?.(
    Buffer.from('{"model":"m","input":["encoding_format","base64"],"x":{"encoding_format":"base64"}}'),
  );
  const floats = bytes(answer([1]));
  t.equal(words?.(floats), floats);
});

test('property: vectors in single precision survive the way there and back', async (t) => {
  const vectors = fc.array(
    fc.array(
      fc.float({ noNaN: true, noDefaultInfinity: true }).map((x) => x + 0),
      { minLength: 1 },
    ),
  );
  fc.assert(
    fc.property(vectors, (list) => {
      const there = toBase64(bytes(answer(...list)));
      t.strictSame(parse(there), answer(...list.map(base64)));
      t.strictSame(parse(toFloats(there)), answer(...list.map((vector) => vector.map((x) => x + 0))));
    }),
  );
});

test('usage is all input, by the total where there is nothing else', async (t) => {
  const usage = { input: 5, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
  t.same(embeddings.usageOf(bytes(answer([1]))), usage);
  t.same(embeddings.usageOf(bytes({ data: [], usage: { total_tokens: 5 } })), usage);
  t.equal(embeddings.usageOf(bytes({ data: [], usage: {} })), null);
  t.equal(embeddings.usageOf(bytes({ data: [] })), null);
});
