import { Cohere, CohereClient, CohereClientV2, CohereError } from 'cohere-ai';
import { test } from 'tap';
import { type DemoGateway, startGateway } from '../support/gateway.js';
import { raisedAs } from '../support/sdks/raised.js';
import { skipWaits } from '../support/sdks/skip-waits.js';

const documents = ['Bergen is wet', 'Oslo is the capital of Norway', 'bread and butter', 'Oslo has a fjord'];

function createClient(gateway: DemoGateway, token = 'sk-demo'): CohereClient {
  return new CohereClient({ token, environment: gateway.url, maxRetries: 0 });
}

test('cohere: documents are ranked, the best first', async (t) => {
  const client = createClient(await startGateway(t, { demo: 'simulator' }));
  const query = 'the capital of Norway';
  const all = await client.rerank({ model: 'sim-rerank', query, documents });
  t.equal(all.results.length, documents.length);
  t.equal(all.results[0]?.index, 1);
  const scores = all.results.map((result) => result.relevanceScore);
  t.strictSame(
    scores,
    scores.toSorted((one, other) => other - one),
  );
  t.match(all, { id: String, meta: { apiVersion: { version: '1' }, billedUnits: { searchUnits: 1 } } });
  t.ok(all.results.every((result) => result.document === undefined));

  const best = await client.rerank({ query, documents, topN: 2, returnDocuments: true });
  t.equal(best.results.length, 2, 'the model is the usual one');
  t.match(best.results[0], { index: 1, document: { text: documents[1] } });

  const objects = documents.map((text, index) => ({ title: `document ${index}`, text }));
  const ranked = await client.rerank({
    model: 'sim-rerank',
    query,
    documents: objects,
    rankFields: ['title', 'text'],
    maxChunksPerDoc: 10,
  });
  t.equal(ranked.results[0]?.index, 1);
});

test('cohere: the second version of the API ranks alike', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const client = new CohereClientV2({ token: 'sk-demo', environment: gateway.url, maxRetries: 0 });
  const { results } = await client.rerank({ model: 'sim-rerank', query: 'the capital of Norway', documents });
  t.match(results[0], { index: 1, relevanceScore: Number });
});

test('cohere: an error has its class, status and message', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const client = createClient(gateway);
  const asked = { model: 'sim-rerank', query: 'a', documents };
  const cases = [
    [client.rerank({ ...asked, model: '' }), Cohere.BadRequestError, 400, /model/],
    [createClient(gateway, 'sk-unknown').rerank(asked), Cohere.UnauthorizedError, 401, /key/],
    [client.rerank({ ...asked, model: 'nope' }), Cohere.NotFoundError, 404, /nope/],
    [
      client.rerank({ ...asked, query: '[[fault:status=429]] a' }),
      Cohere.TooManyRequestsError,
      429,
      /status/,
    ],
    [client.rerank({ ...asked, query: '[[fault:reset]] a' }), CohereError, 502, /upstream/],
  ] as const;
  for (const [call, errorClass, status, message] of cases) {
    const error = await raisedAs(CohereError, call);
    t.ok(error instanceof errorClass, `${status}`);
    t.equal(error.statusCode, status);
    t.match(error.body, { error: { message } });
    t.match(error.rawResponse?.headers.get('x-request-id'), /^req_/);
    // What an upstream answers is handed on as it came.
    if (status !== 429) t.match(error.body, { message });
  }
});

test('cohere: a rate limit is retried', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const patient = new CohereClient({ token: 'sk-demo', environment: gateway.url, maxRetries: 1 });
  const waits = skipWaits(t, 7000);
  const query = '[[fault:status=429 retry-after=7 times=1]] capital of Norway';
  const answer = await patient.rerank({ model: 'sim-rerank', query, documents });
  t.equal(answer.results[0]?.index, 1);
  t.equal(waits(), 1);
  t.equal(gateway.simulator.state().totalRequests, 2);
});

test('cohere: texts have embeddings, by their types and as a list', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const options = { token: 'sk-demo', environment: gateway.url, maxRetries: 0 };
  const client = new CohereClientV2(options);
  const asked = { model: 'sim-embedding', inputType: 'search_document', texts: documents } as const;
  const { embeddings, texts, meta } = await client.embed({ ...asked, embeddingTypes: ['float', 'base64'] });
  const floats = embeddings.float ?? [];
  t.equal(floats.length, documents.length);
  t.same(texts, documents);
  t.ok((meta?.billedUnits?.inputTokens ?? 0) > 0);
  const bytes = Buffer.from(embeddings.base64?.[1] ?? '', 'base64');
  t.equal(bytes.length, 4 * (floats[1]?.length ?? -1));
  t.equal(bytes.readFloatLE(0), Math.fround(floats[1]?.[0] ?? Number.NaN));

  const plain = await client.embed({ ...asked, outputDimension: 8 });
  t.equal(plain.embeddings.float?.[0]?.length, 8, 'numbers unless other types are asked for');
  const inputs = [{ content: [{ type: 'text', text: documents[1] ?? '' }] as Cohere.EmbedContent[] }];
  const ofInputs = await client.embed({ model: asked.model, inputType: 'search_query', inputs });
  t.strictSame(ofInputs.embeddings.float?.[0], floats[1]);
  const error = await raisedAs(CohereError, client.embed({ ...asked, embeddingTypes: ['int8'] }));
  t.match(error, { statusCode: 400, message: /'float' and 'base64'/ });

  const older = new CohereClient(options);
  const first = await older.embed({ ...asked, texts: [documents[1] ?? ''] });
  t.match(first, { responseType: 'embeddings_floats', id: String });
  t.strictSame(first.embeddings, [floats[1]]);
  const typed = await older.embed({ ...asked, embeddingTypes: ['float'] });
  t.match(typed, { responseType: 'embeddings_by_type', embeddings: { float: floats } });
});
