import { countTokens } from '../answer/tokens.js';
import { textDirectives } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { Reply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { integer, invalid, modelOf, required } from '../openai/values.js';

const shareOfMatches = 0.9;
/** Words are compared by their parts of three letters, most of which two forms of a word have in common. */
const partLength = 3;

/**
 * The fraction of a query's words that a document contains, from 0 to 1. A word counts by the share of its parts in the
 * best matching word of the document. Of two documents with the same matches, the shorter one ranks higher.
 */
function overlap(query: string, document: string): number {
  const asked = wordsOf(query);
  const there = wordsOf(document);
  if (asked.length === 0 || there.length === 0) {
    return 0;
  }
  const partsThere = new Set(there.flatMap(partsOf));
  const matches = asked.reduce((sum, word) => sum + shareIn(partsOf(word), partsThere), 0) / asked.length;
  const density = shareIn(there.flatMap(partsOf), new Set(asked.flatMap(partsOf)));
  return Math.round(1e6 * (shareOfMatches * matches + (1 - shareOfMatches) * density)) / 1e6;
}

function shareIn(parts: readonly string[], others: ReadonlySet<string>): number {
  return parts.filter((part) => others.has(part)).length / parts.length;
}

function wordsOf(text: string): readonly string[] {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

function partsOf(word: string): readonly string[] {
  const bounded = `^${word}$`;
  const count = Math.max(1, bounded.length - partLength + 1);
  return Array.from({ length: count }, (_, at) => bounded.slice(at, at + partLength));
}

/** `POST /v1/rerank`: an answer that Cohere's clients and Jina's can read. */
export const rerankRoutes = jsonRoutes({
  path: '/v1/rerank',
  answer: rank,
});

interface Document {
  readonly text: string;
  /** The document in the answer, if documents are requested. */
  readonly shown: object;
}

function rank(request: JsonRequest): Reply {
  const { body, digest } = request;
  const model = modelOf(body, 'sim-rerank', true);
  const query = required(body, 'query');
  if (typeof query !== 'string' || query === '') {
    throw invalid('query', 'a text that is not empty');
  }
  const { directives: asked, rest } = textDirectives(query);
  const documents = readDocuments(body);
  const most = integer(body, 'top_n', 1, Infinity) ?? documents.length;
  const results = documents
    .map((document, index) => ({
      index,
      relevance_score: overlap(rest, document.text),
      ...(body.return_documents === true ? { document: document.shown } : {}),
    }))
    .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, most);
  const tokens = documents.reduce((sum, { text }) => sum + countTokens(text), countTokens(query));
  const answer = {
    id: `rerank-${digest.slice(0, 24)}`,
    object: 'list',
    model,
    results,
    usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
    meta: {
      api_version: { version: '1' },
      billed_units: { search_units: 1 },
      tokens: { input_tokens: tokens },
    },
  };
  return jsonReply(request, answer, asked);
}

function readDocuments(body: JsonObject): readonly Document[] {
  const documents = required(body, 'documents');
  if (!Array.isArray(documents) || documents.length === 0) {
    throw invalid('documents', 'an array with at least one document');
  }
  const fields = readFields(body.rank_fields);
  return documents.map((document: unknown, index) => {
    if (typeof document === 'string') {
      return { text: document, shown: { text: document } };
    }
    const text = isObject(document) ? textIn(document, fields) : null;
    if (text === null) {
      throw invalid(`documents[${index}]`, `a text, or an object with ${fields.join(' or ')}`);
    }
    return { text, shown: document as object };
  });
}

function readFields(fields: unknown): readonly string[] {
  const list: unknown = fields ?? ['text'];
  if (!Array.isArray(list) || list.length === 0 || !list.every((one) => typeof one === 'string')) {
    throw invalid('rank_fields', 'an array of names');
  }
  return list;
}

/** The texts of the ranked members, or null without any. */
function textIn(document: JsonObject, fields: readonly string[]): string | null {
  const texts = fields.flatMap((field) => {
    const value = document[field];
    return typeof value === 'string' ? [value] : [];
  });
  return texts.length === 0 ? null : texts.join('\n');
}
