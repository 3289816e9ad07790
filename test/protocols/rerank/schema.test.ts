import { test } from 'tap';
import { rerankRequest } from '../../../src/protocols/rerank/index.js';
import { type Refused, refuses, takes } from '../verdicts.js';

const body = (more: object = {}) => ({ model: 'm', query: 'q', documents: ['a', 'b'], ...more });

test('what Cohere and Jina clients send is accepted, and members unknown here', async (t) => {
  takes(t, rerankRequest, { query: 'q', documents: [''] });
  takes(t, rerankRequest, body({ top_n: 1, return_documents: true }));
  takes(
    t,
    rerankRequest,
    body({
      documents: [{ text: 'a' }, { title: 'b', body: 'c' }, 'd'],
      rank_fields: ['title', 'body'],
      max_chunks_per_doc: 10,
      max_chunk_per_doc: 10,
      max_tokens_per_doc: 4096,
      overlap_tokens: 0,
      priority: 0,
      truncation: true,
    }),
  );
  takes(t, rerankRequest, body({ model: null, top_n: null, return_documents: null, rank_fields: null }));
});

const refused: readonly Refused[] = [
  [{ model: 'm', documents: ['a'] }, 'query', "Missing required parameter 'query'"],
  [{ model: 'm', query: 'q' }, 'documents', "Missing required parameter 'documents'"],
  [body({ model: 5 }), 'model', 'expected a non-empty string or null'],
  [{ model: 'm', input: ['a'] }, 'input', 'POST /v1/embeddings'],
];
for (const one of refused) {
  test(`refused with its place: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) =>
    refuses(t, rerankRequest, one));
}
