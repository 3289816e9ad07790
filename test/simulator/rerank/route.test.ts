import { CohereClient } from 'cohere-ai';
import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { post } from '../post.js';

const documents = [
  'Carson City is the capital city of the American state of Nevada.',
  'The weather in Nevada is dry.',
  'Bananas are rich in potassium.',
];
const body = (more: object = {}) => ({
  model: 'sim-rerank',
  query: 'What is the capital of Nevada?',
  documents,
  ...more,
});
const orderOf = (text: string) => JSON.parse(text).results.map(({ index }: { index: number }) => index);

test('an answer has the members of both forms, the best result first', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/rerank', body());
  t.equal(heard.status, 200);
  const answer = JSON.parse(heard.text);
  t.match(answer, {
    id: /^rerank-[0-9a-f]{24}$/,
    object: 'list',
    model: 'sim-rerank',
    usage: { prompt_tokens: Number, completion_tokens: 0, total_tokens: Number },
    meta: { api_version: { version: '1' }, billed_units: { search_units: 1 } },
  });
  t.strictSame(orderOf(heard.text), [0, 1, 2]);
  const scores = answer.results.map((result: { relevance_score: number }) => result.relevance_score);
  t.ok(scores.every((score: number) => score >= 0 && score <= 1));
  t.ok(scores[0] > 0.7 && scores[2] < 0.2, `${scores}`);
  t.notOk('document' in answer.results[0]);
});

test('positions are those of the request, and no more come than were asked for', async (t) => {
  const simulator = await simulate(t);
  const reversed = documents.toReversed();
  t.strictSame(orderOf((await post(simulator, '/rerank', body({ documents: reversed }))).text), [2, 1, 0]);
  t.strictSame(orderOf((await post(simulator, '/rerank', body({ top_n: 2 }))).text), [0, 1]);
  t.strictSame(orderOf((await post(simulator, '/rerank', body({ top_n: 99 }))).text), [0, 1, 2]);
  const equal = await post(simulator, '/rerank', body({ documents: ['x', 'x', ''] }));
  t.strictSame(orderOf(equal.text), [0, 1, 2], 'equals keep their order');
});

test('documents come back where they are asked for, and only then', async (t) => {
  const simulator = await simulate(t);
  const object = { title: 'Nevada', body: 'its capital is Carson City', year: 2020 };
  const sent = body({
    documents: ['nothing', object],
    rank_fields: ['title', 'body'],
    return_documents: true,
  });
  const { results } = JSON.parse((await post(simulator, '/rerank', sent)).text);
  t.match(results, [
    { index: 1, document: object },
    { index: 0, document: { text: 'nothing' } },
  ]);
  const texts = await post(simulator, '/rerank', body({ documents: documents.map((text) => ({ text })) }));
  t.strictSame(orderOf(texts.text), [0, 1, 2]);
});

test('without a model its own stands in', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/rerank', body({ model: undefined }));
  t.match(JSON.parse(heard.text), { model: 'sim-rerank' });
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string][] = [
    [body({ model: 'nope' }), 404, 'model'],
    [body({ query: undefined }), 400, 'query'],
    [body({ query: '' }), 400, 'query'],
    [body({ documents: undefined }), 400, 'documents'],
    [body({ documents: [] }), 400, 'documents'],
    [body({ documents: ['a', 5] }), 400, 'documents[1]'],
    [body({ documents: [{ title: 'a' }] }), 400, 'documents[0]'],
    [body({ rank_fields: [5] }), 400, 'rank_fields'],
    [body({ top_n: 0 }), 400, 'top_n'],
  ];
  for (const [sent, status, param] of refused) {
    const heard = await post(simulator, '/rerank', sent);
    t.equal(heard.status, status, JSON.stringify(sent));
    t.match(JSON.parse(heard.text), { error: { param } });
  }
  t.equal((await post(simulator, '/rerank', body({ query: '[[fault:status=500]] a' }))).status, 500);
});

test('the Cohere client reads the results', async (t) => {
  const simulator = await simulate(t);
  const client = new CohereClient({ token: 'any', environment: simulator.url.replace('/v1', '') });
  const answer = await client.rerank({
    model: 'sim-rerank',
    query: 'capital of Nevada',
    documents,
    topN: 2,
    returnDocuments: true,
  });
  t.match(answer, {
    id: String,
    results: [
      { index: 0, relevanceScore: Number, document: { text: documents[0] } },
      { index: 1, relevanceScore: Number },
    ],
    meta: { billedUnits: { searchUnits: 1 } },
  });
  const refused = client.rerank({ model: 'nope', query: 'q', documents }, { maxRetries: 0 });
  await t.rejects(refused, { name: 'NotFoundError', statusCode: 404 });
});
