import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { type AnswerCharges, inputMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { bodies, flag, given, name, nullable } from '../../schema/members.js';
import { OPEN_BRACKET } from '../../wire/bytes.js';
import {
  isObject,
  type JsonObject,
  numberOrNull,
  objectOf,
  parseObject,
  textOrNull,
} from '../../wire/json.js';
import { type NumberNames, numberNames, readNumbers } from '../../wire/json-numbers.js';
import { elementsOf, scanBody } from '../../wire/json-scan.js';
import {
  afterColon,
  lastMemberAt,
  lastMemberObject,
  withMembers,
  withoutMembers,
} from '../../wire/json-skip.js';
import { parseBody } from '../../wire/skeleton.js';
import { noEffects } from '../effects.js';
import { type Endpoint, judgeError, plainEndpoint } from '../endpoint.js';

const resultsKey = '"results"';
const dataKey = Buffer.from('"data"');

/** `POST /v1/rerank` */
export const rerank: Endpoint = {
  ...plainEndpoint,
  ...wholeAnswers(rerankUsage, inputMetering, judgeError, [resultsKey]),
  noteCharges: noteSearchUnits,
  protocol: 'rerank',
  // Cohere's search unit (https://cohere.com/pricing), and Voyage's tokens (https://docs.voyageai.com/docs/faq).
  countedList: { name: 'documents', perUnit: 100, repeated: 'query' },
  upstreamPath: () => '/rerank',
  amender: rerankAmender,
  hasEffects: noEffects,
};

const usageKey = Buffer.from('"usage"');
const usageNames = numberNames(['prompt_tokens', 'total_tokens']);
const metaKey = Buffer.from('"meta"');
/** In `tokens`, or in `billed_units`, which may have search units instead of tokens. */
const metaNames = numberNames(['input_tokens']);

const unitNames = numberNames(['search_units']);

/** Metadata are members of the answer. The client's documents, which it may repeat, may have members of any name. */
const levels = 1;

/**
 * Finds the tokens of an answer in its `usage` (Jina) or its `meta` (Cohere). All of them are input.
 * @returns null if neither has any
 */
function rerankUsage(answer: Buffer): Usage | null {
  const input = mostOf(answer, usageKey, usageNames) ?? mostOf(answer, metaKey, metaNames);
  return input === null ? null : { input, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
}

/** An answer that names no search units is that of an upstream that bills none: it counts as one call, and an error as none. */
function noteSearchUnits(answer: Buffer, charges: AnswerCharges): void {
  const units = mostOf(answer, metaKey, unitNames) ?? 0;
  charges.calls = units > 0 ? units : hasResults(answer) ? 1 : 0;
}

/** Voyage has them in `data`. */
function hasResults(answer: Buffer): boolean {
  if (answer.includes(resultsKey)) return true;
  const at = lastMemberAt(answer, dataKey, levels);
  return at !== -1 && answer[afterColon(answer, at + dataKey.length - 1)] === OPEN_BRACKET;
}

/** Returns the largest of the wanted numbers in the answer's last object of that name, or null if it has none. */
function mostOf(answer: Buffer, key: Buffer, wanted: NumberNames): number | null {
  const found: number[] = [];
  const start = lastMemberObject(answer, key, levels);
  if (start === -1 || readNumbers(answer, start, wanted, found) === -1) return null;
  const most = Math.max(...found);
  return most === -1 ? null : most;
}

/** Settings of a request that affect the answer. */
interface Wanted {
  /** Null if the request names none. */
  readonly model: string | null;
  /** Maximum number of results. Infinite if the request sets none. */
  readonly most: number;
  /** Whether the results are also needed in Voyage's form: a request with `top_n` is of another vendor's client. */
  readonly asData: boolean;
  /** Whether those contain documents, which the vendor sends only if they are requested. */
  readonly withDocuments: boolean;
}

/**
 * Makes a function that converts an answer to one that Cohere's clients (`id`, `results`, `meta`), Jina's (`object`,
 * `model`, `usage`, `results`) and Voyage's (`object`, `model`, `usage`, `data`) can read. It adds missing members,
 * sorts the results by score, converts their documents to objects, and keeps at most `top_n` or `top_k` of them.
 * @param body a validated request
 * @returns a function of the whole answer, which returns the same buffer if nothing changes
 */
function rerankAmender(body: Buffer): (body: Buffer) => Buffer {
  const request = objectOf(parseBody(body, scanBody(body)));
  const count = numberOrNull(request.top_n);
  const most = count ?? numberOrNull(request.top_k) ?? 0;
  const wanted = {
    model: textOrNull(request.model),
    // The upstream judges an invalid number of results.
    most: most >= 1 ? most : Number.POSITIVE_INFINITY,
    asData: count === null,
    withDocuments: request.return_documents === true,
  };
  return (body) => amend(body, wanted);
}

function amend(body: Buffer, wanted: Wanted): Buffer {
  const answer = parseObject(body.toString('utf8'));
  const source = Array.isArray(answer?.results) ? 'results' : 'data';
  const given = answer?.[source];
  if (answer === null || !Array.isArray(given)) return body;
  const results: readonly unknown[] = given;
  // Other answers have a list there, too, such as errors of some vendors.
  if (source === 'data' && numberOrNull(objectOf(results[0]).index) === null) return body;
  const order = bestOf(results, wanted.most);
  const missing = missingOf(answer, wanted.model);
  const isKept = source === 'results' && order === null && !results.some(hasTextAlone);
  const addsData = wanted.asData && !(isKept && Array.isArray(answer.data));
  if (isKept && !addsData && Object.keys(missing).length === 0) return body;
  const replaced = new Set(Object.keys(missing));
  if (!isKept) replaced.add(source).add('results');
  if (addsData) replaced.add('data');
  const found = withoutMembers(body, replaced);
  if (found === null) return body;
  const chosen = order ?? [...results.keys()];
  const texts = elementsOf(Buffer.from(found.taken.get(source) ?? '')) ?? [];
  const changed = isKept ? [] : [`"results":${resultTexts(results, chosen, texts)}`];
  // Voyage's own results stay as they are.
  const ofVoyage = source === 'data' ? `[${chosen.map((index) => texts[index] ?? 'null').join()}]` : null;
  if (addsData) changed.push(`"data":${ofVoyage ?? dataText(results, chosen, wanted.withDocuments)}`);
  return withMembers([...changed, ...memberTexts(missing)].join(), found.rest);
}

/** Writes results without parsing what they repeat of the request: its numbers may have more digits than a parsed one keeps. */
function resultTexts(
  results: readonly unknown[],
  order: readonly number[],
  texts: readonly string[],
): string {
  return `[${order.map((index) => withDocument(results[index], texts[index] ?? 'null')).join()}]`;
}

/** Writes results in Voyage's form, in which a document is a text. */
function dataText(results: readonly unknown[], order: readonly number[], withDocuments: boolean): string {
  const data = order.map((position) => {
    const { index, relevance_score, document } = objectOf(results[position]);
    const shown = withDocuments ? (textOrNull(document) ?? textOrNull(objectOf(document).text)) : null;
    return { index, relevance_score, document: shown ?? undefined };
  });
  return JSON.stringify(data);
}

function memberTexts(members: JsonObject): string[] {
  return Object.entries(members).map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
}

/** Returns the indexes of the results in the right order and number; null if nothing changes. */
function bestOf(results: readonly unknown[], most: number): readonly number[] | null {
  const scores = results.map(scoreOf);
  // Without scores, the order is unknown.
  const sorted = scores.some(Number.isNaN) || falls(scores);
  if (sorted && results.length <= most) return null;
  const indexes = [...results.keys()];
  const ordered = sorted
    ? indexes
    : indexes.sort((one, other) => (scores[other] as number) - (scores[one] as number));
  return ordered.slice(0, most);
}

function falls(scores: readonly number[]): boolean {
  let before = Number.POSITIVE_INFINITY;
  for (const score of scores) {
    if (score > before) return false;
    before = score;
  }
  return true;
}

/** Clients of both read an object with a text. Some servers repeat a document as bare text. */
function withDocument(result: unknown, text: string): string {
  const found = hasTextAlone(result) ? withoutMembers(Buffer.from(text), documentName) : null;
  if (found === null) return text;
  return withMembers(`"document":{"text":${found.taken.get('document')}}`, found.rest).toString('utf8');
}

const documentName: ReadonlySet<string> = new Set(['document']);

function hasTextAlone(result: unknown): result is JsonObject {
  return isObject(result) && typeof result.document === 'string';
}

function scoreOf(result: unknown): number {
  return (isObject(result) ? numberOrNull(result.relevance_score) : null) ?? Number.NaN;
}

/** Returns the members that a client may expect and the answer lacks. */
function missingOf(answer: JsonObject, model: string | null): JsonObject {
  const missing: Record<string, unknown> = {};
  if (typeof answer.id !== 'string') missing.id = randomUUID();
  if (typeof answer.object !== 'string') missing.object = 'list';
  if (typeof answer.model !== 'string' && model !== null) missing.model = model;
  const tokens = tokensOf(answer);
  const usage = objectOf(answer.usage);
  const total = numberOrNull(usage.total_tokens);
  const prompt = numberOrNull(usage.prompt_tokens);
  if (total === null || prompt === null)
    missing.usage = { ...usage, total_tokens: total ?? tokens, prompt_tokens: prompt ?? tokens };
  if (!isObject(answer.meta)) {
    missing.meta = {
      api_version: { version: '1' },
      billed_units: { search_units: 1 },
      tokens: { input_tokens: tokens },
    };
  }
  return missing;
}

/** Returns the tokens that the answer names in either form, or 0. */
function tokensOf({ usage, meta }: JsonObject): number {
  const { total_tokens: total, prompt_tokens: prompt } = objectOf(usage);
  const { tokens, billed_units: billed } = objectOf(meta);
  const counts = [total, prompt, objectOf(tokens).input_tokens, objectOf(billed).input_tokens];
  return counts.map(numberOrNull).find((count) => count !== null) ?? 0;
}

const count = nullable(Type.Integer({ minimum: 1 }));

/** Body of `POST /v1/rerank`, as Cohere's, Jina's and Voyage's clients send it. */
export const rerankRequestType = Type.Object({
  model: nullable(name),
  query: name,
  // Objects have a `text`, or the members that `rank_fields` names.
  documents: Type.Array(Type.Union([Type.String(), Type.Object({})]), { minItems: 1 }),
  top_n: count,
  top_k: count,
  return_documents: flag,
  rank_fields: nullable(Type.Array(Type.String())),
  max_chunks_per_doc: count,
  max_chunk_per_doc: count,
  max_tokens_per_doc: count,
  overlap_tokens: nullable(Type.Integer({ minimum: 0 })),
  priority: nullable(Type.Integer({ minimum: 0 })),
  truncation: flag,
});

/** Bodies of other endpoints, recognized by the member with their input. */
const rerankMixedBody: MixedBody = {
  own: 'documents',
  foreign: [bodies.embeddings, bodies.chat],
};

/** Checks a rerank request body, which is passed on unchanged. */
export const rerankRequest = compileSchema(
  Type.Object({ model: nullable(name), query: given, documents: given }),
  rerankMixedBody,
  { reads: Object.keys(rerankRequestType.properties) },
);
