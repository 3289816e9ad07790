import { chatManner } from './chat.js';
import { textDirectives } from './directives.js';
import { isObject, type JsonObject } from './json.js';
import { integer, invalid, type JsonRequest, jsonRoute, modelOf, required } from './json-request.js';
import { bodyReply, type Reply, type Route } from './reply.js';
import { overlap } from './rerank-overlap.js';
import { countTokens } from './tokens.js';

/** `POST /v1/rerank`: an answer that Cohere's clients and Jina's can read. */
export const rerankRoute: Route = jsonRoute('/v1/rerank', rank);

interface Document {
  readonly text: string;
  /** What goes back where documents are asked for. */
  readonly shown: object;
}

function rank({ body, digest, directives }: JsonRequest): Reply {
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
    usage: { total_tokens: tokens, prompt_tokens: tokens },
    meta: {
      api_version: { version: '1' },
      billed_units: { search_units: 1 },
      tokens: { input_tokens: tokens },
    },
  };
  return bodyReply({
    status: 200,
    body: JSON.stringify(answer),
    manner: chatManner,
    directives: [...directives, ...asked],
  });
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

/** The texts of the members that are looked at, or null when there is none of them. */
function textIn(document: JsonObject, fields: readonly string[]): string | null {
  const texts = fields.flatMap((field) => {
    const value = document[field];
    return typeof value === 'string' ? [value] : [];
  });
  return texts.length === 0 ? null : texts.join('\n');
}
