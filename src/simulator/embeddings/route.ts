import { countTokens } from '../answer/tokens.js';
import { textDirectives } from '../faults/directives.js';
import type { JsonObject } from '../http/json.js';
import type { Reply } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { integer, invalid, isTokens, modelOf, required } from '../openai/values.js';

/** Positions per feature: with only one, two features that collide could not be told apart. */
const spread = 4;
const wordWeight = 2;
const gramWeight = 1;
const gramLength = 3;

/**
 * The vector of a text, normalized to length 1. Its words and their parts are hashed to positions, so that texts with
 * common words are near each other, and others nearly orthogonal.
 */
function textVector(text: string, dimensions: number): Float32Array {
  const vector = new Float64Array(dimensions);
  for (const word of text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [text]) {
    add(vector, word, wordWeight);
    const bounded = `^${word}$`;
    for (let at = 0; at + gramLength <= bounded.length; at++) {
      add(vector, bounded.slice(at, at + gramLength), gramWeight);
    }
  }
  return unit(vector);
}

/** The vector of a text given as tokens. */
function tokensVector(tokens: readonly number[], dimensions: number): Float32Array {
  const vector = new Float64Array(dimensions);
  for (const token of tokens) {
    add(vector, `#${token}`, 1);
  }
  return unit(vector);
}

function add(vector: Float64Array, feature: string, weight: number): void {
  let state = hash(feature);
  for (let i = 0; i < spread; i++) {
    state = mixed(state + i);
    const position = (state >>> 1) % vector.length;
    vector[position] = (vector[position] ?? 0) + (state & 1 ? weight : -weight);
  }
}

/** FNV-1a over the UTF-16 units. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  }
  return state;
}

/** The last steps of MurmurHash3: every bit depends on every other. */
function mixed(value: number): number {
  let state = value | 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}

function unit(vector: Float64Array): Float32Array {
  const length = Math.hypot(...vector);
  if (length === 0) {
    vector[0] = 1;
  }
  return Float32Array.from(vector, (value) => (length === 0 ? value : value / length));
}

/** Most texts of a request. */
export const mostInputs = 2048;
const maxTokens = 8192;
export const usualDimensions = 256;
export const mostDimensions = 4096;

/** `POST /v1/embeddings` */
export const embeddingsRoutes = jsonRoutes({
  path: '/v1/embeddings',
  answer: embed,
});

/** A text, or the tokens of one. */
type Input = string | readonly number[];

function embed(request: JsonRequest): Reply {
  const { body } = request;
  const model = modelOf(body, 'sim-embedding', false);
  const inputs = readInputs(required(body, 'input'));
  const dimensions = integer(body, 'dimensions', 1, mostDimensions) ?? usualDimensions;
  const base64 = readFormat(body) === 'base64';
  const asked = typeof inputs[0] === 'string' ? textDirectives(inputs[0]).directives : [];
  const data = inputs.map((input, index) => {
    const vector = vectorOf(input, dimensions);
    return { object: 'embedding', index, embedding: base64 ? base64Of(vector) : Array.from(vector) };
  });
  const tokens = inputs.reduce((sum, input) => sum + tokensOf(input), 0);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return jsonReply(request, { object: 'list', data, model, usage }, asked);
}

function readInputs(value: unknown): readonly Input[] {
  const several = Array.isArray(value) && !isTokens(value);
  const list: readonly unknown[] = several ? value : [value];
  if (list.length === 0 || list.length > mostInputs) {
    throw invalid('input', `1 to ${mostInputs} texts, not ${list.length}`);
  }
  const first = typeof list[0];
  return list.map((one, index) => {
    const param = several ? `input[${index}]` : 'input';
    if (one === '' || typeof one !== first || !(typeof one === 'string' || isTokens(one))) {
      throw invalid(param, 'a text that is not empty, or a list of tokens, like all others');
    }
    const tokens = tokensOf(one);
    if (tokens > maxTokens) {
      throw new RequestError(
        400,
        `This model's maximum context length is ${maxTokens} tokens, but '${param}' has ${tokens}.`,
        param,
      );
    }
    return one;
  });
}

function readFormat(body: JsonObject): 'float' | 'base64' {
  const format = body.encoding_format ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    throw invalid('encoding_format', "'float' or 'base64'");
  }
  return format;
}

function tokensOf(input: Input): number {
  return typeof input === 'string' ? countTokens(input) : input.length;
}

/** The vector of a text without its directives, or of tokens. */
export function vectorOf(input: Input, dimensions: number): Float32Array {
  return typeof input === 'string'
    ? textVector(textDirectives(input).rest || input, dimensions)
    : tokensVector(input, dimensions);
}

/** Little-endian single precision. */
function base64Of(vector: Float32Array): string {
  const bytes = Buffer.alloc(4 * vector.length);
  for (const [index, value] of vector.entries()) {
    bytes.writeFloatLE(value, 4 * index);
  }
  return bytes.toString('base64');
}
