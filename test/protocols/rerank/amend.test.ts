import { test } from 'tap';
import { rerank } from '../../../src/protocols/rerank/index.js';
import { fc } from '../../support/seed.js';

type Amender = (answer: Buffer) => Buffer;

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const amenderOf = (more: object = {}): Amender =>
  rerank.amender?.(bytes({ model: 'm', query: 'q', documents: ['a', 'b', 'c'], ...more })) as Amender;
const amended = (answer: unknown, more: object = {}) => JSON.parse(amenderOf(more)(bytes(answer)).toString());
const result = (index: number, relevance_score: number) => ({ index, relevance_score });

const results = [result(2, 0.9), result(0, 0.5), result(1, 0.5)];
const whole = {
  id: 'r1',
  object: 'list',
  model: 'upstream',
  results,
  data: results,
  usage: { total_tokens: 7, prompt_tokens: 7 },
  meta: { api_version: { version: '1' }, billed_units: { search_units: 1 } },
};

test('an answer that has everything, in order, is the same buffer', async (t) => {
  for (const more of [{}, { top_n: 3 }, { top_n: null }]) {
    const answer = bytes(whole);
    t.equal(amenderOf(more)(answer), answer);
  }
});

test('what a Cohere server leaves out is there for Jina clients', async (t) => {
  const { object: _, model: __, usage: ___, ...cohere } = whole;
  const meta = { ...whole.meta, tokens: { input_tokens: 9, output_tokens: 0 } };
  const answer = amended({ ...cohere, meta });
  t.strictSame(answer, {
    ...whole,
    meta,
    model: 'm',
    usage: { total_tokens: 9, prompt_tokens: 9 },
  });
});

test('what a Jina server leaves out is there for Cohere clients', async (t) => {
  const answer = amended({ model: 'upstream', object: 'list', usage: { total_tokens: 7 }, results: [] });
  t.match(answer, { id: /^[0-9a-f-]{36}$/ });
  t.strictSame(answer, {
    ...whole,
    id: answer.id,
    results: [],
    data: [],
    meta: { ...whole.meta, tokens: { input_tokens: 7 } },
  });
});

test('what a Cohere or Jina server answers is there for Voyage clients, which know results as data', async (t) => {
  const { data: _, ...others } = whole;
  t.strictSame(amended(others).data, results);
  t.strictSame(amended(others, { top_k: 2 }).data, results.slice(0, 2), 'no more than asked for');
  const documented = results.map((each) => ({ ...each, document: { text: 'a' } }));
  t.strictSame(amended({ ...others, results: documented }).data, results, 'no documents unasked');
  t.strictSame(
    amended({ ...others, results: documented }, { return_documents: true }).data,
    results.map((each) => ({ ...each, document: 'a' })),
  );
  t.notOk('data' in amended(others, { top_n: 3 }), 'the request is not of such a client');
});

test('what a Voyage server answers is there for the clients of others', async (t) => {
  const data = [
    { ...result(1, 0.2), document: 'b' },
    { ...result(0, 0.9), document: 'a' },
  ];
  const answer = amended(
    { object: 'list', data, model: 'upstream', usage: { total_tokens: 7 } },
    { top_n: 1 },
  );
  t.match(answer, { id: String, object: 'list', model: 'upstream', meta: { tokens: { input_tokens: 7 } } });
  t.strictSame(answer.results, [{ ...result(0, 0.9), document: { text: 'a' } }]);
  t.notOk('data' in answer);
});

test('results of Voyage keep their bytes for its own clients, and a list of anything else is no results', async (t) => {
  const own = '{"index":0,"relevance_score":0.500000000000000011,"extra":"e","document":"a"}';
  const answer = amenderOf({ top_k: 2 })(Buffer.from(`{"object":"list","data":[${own}]}`)).toString();
  t.ok(answer.includes(`"data":[${own}]`), answer);
  const failed = bytes({ code: 400, data: [{ detail: 'no' }] });
  t.equal(amenderOf()(failed), failed);
});

test('the best results come first, equals in the order they came, and no more than asked for', async (t) => {
  const results = [result(0, 0.1), result(1, 0.8), result(2, 0.8), result(3, -2)];
  const order = (more: object) =>
    amended({ ...whole, results }, more).results.map(({ index }: { index: number }) => index);
  t.strictSame(order({}), [1, 2, 0, 3]);
  t.strictSame(order({ top_n: 2 }), [1, 2]);
  t.strictSame(order({ top_k: 2 }), [1, 2]);
  const { data: _, ...others } = whole;
  t.strictSame(amended(others, { top_n: 1 }), { ...others, results: [result(2, 0.9)] });
});

test('a document that is a text becomes an object with it', async (t) => {
  const results = [
    { ...result(0, 0.9), document: 'a' },
    { ...result(1, 0.5), document: { text: 'b' } },
    { ...result(2, 0.1), document: null },
  ];
  t.strictSame(amended({ ...whole, results }).results, [
    { ...result(0, 0.9), document: { text: 'a' } },
    results[1],
    results[2],
  ]);
  const answer = bytes({ ...whole, results: results.slice(1) });
  t.equal(amenderOf()(answer), answer);
});

test('results without a score keep their order', async (t) => {
  const results = [result(0, 0.1), { index: 1 }, null, result(2, 0.9)];
  t.strictSame(amended({ ...whole, results }).results, results);
  t.strictSame(amended({ ...whole, results }, { top_n: 2 }).results, results.slice(0, 2));
});

test('a model that neither the request nor the answer names is left out', async (t) => {
  const { model: _, ...nameless } = whole;
  t.notOk('model' in amended(nameless, { model: undefined }));
});

test('what is no answer to a rerank is the same buffer', async (t) => {
  for (const text of ['', '[]', '{}', 'null', '{"results":{}}', '{"data":{}}', '{"results":[', '"x"']) {
    const answer = Buffer.from(text);
    t.equal(amenderOf()(answer), answer, text);
  }
});

const anything = fc.jsonValue();
const answers = (results: fc.Arbitrary<unknown[]>) =>
  fc.record(
    {
      id: anything,
      model: anything,
      usage: fc.oneof(anything, fc.record({ total_tokens: anything, prompt_tokens: anything })),
      meta: fc.oneof(anything, fc.record({ tokens: anything, billed_units: anything })),
      results,
    },
    { requiredKeys: ['results'] },
  );
const scored = fc.record({
  index: fc.nat(),
  relevance_score: fc.double({ noNaN: true, noDefaultInfinity: true }),
});

test('property: an amended answer needs no further change', async (t) => {
  fc.assert(
    fc.property(answers(fc.array(scored)), fc.integer({ min: 1, max: 5 }), (answer, top_n) => {
      const amend = amenderOf({ top_n });
      const once = amend(bytes(answer));
      t.equal(amend(once), once);
    }),
  );
});

test('property: any JSON among the results is survived', async (t) => {
  const results = fc.array(fc.oneof(scored, anything, fc.record({ relevance_score: anything })));
  fc.assert(
    fc.property(answers(results), fc.integer({ min: 1, max: 5 }), (answer, top_n) => {
      const { length } = amended(answer, { top_n }).results;
      t.equal(length, Math.min(top_n, answer.results.length));
    }),
  );
});

test('usage is read from either form', async (t) => {
  const usage = (input: number) => ({ input, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 });
  t.same(rerank.usageOf(bytes(whole)), usage(7));
  t.same(rerank.usageOf(bytes({ usage: { total_tokens: 3 }, results: [] })), usage(3));
  t.same(rerank.usageOf(bytes({ meta: { tokens: { input_tokens: 4, output_tokens: 0 } } })), usage(4));
  t.same(
    rerank.usageOf(bytes({ usage: {}, meta: { billed_units: { input_tokens: 5, search_units: 1 } } })),
    usage(5),
  );
  t.equal(rerank.usageOf(bytes({ meta: whole.meta })), null);
  t.equal(rerank.usageOf(bytes({})), null);
});

test('what a result repeats of its document keeps all of its digits, whatever else changes', async (t) => {
  const document = '{"text":"a","id":12345678901234567890,"share":1.0}';
  const results = `{"index":0,"relevance_score":0.1,"document":${document}},{"index":1,"relevance_score":0.90,"document":"b"}`;
  const answer = amenderOf()(Buffer.from(`{"id":"r1","results":[${results}],"meta":{"x":1.0}}`)).toString();
  t.ok(answer.includes(document), answer);
  t.ok(answer.includes('"meta":{"x":1.0}'), answer);
  t.match(JSON.parse(answer).results, [
    { index: 1, document: { text: 'b' } },
    { index: 0, document: { text: 'a' } },
  ]);
});
