import { chatManner } from './chat.js';
import { textDirectives } from './directives.js';
import { textVector, tokensVector } from './embeddings-vector.js';
import type { JsonObject } from './json.js';
import {
  integer,
  invalid,
  isTokens,
  type JsonRequest,
  jsonRoute,
  modelOf,
  required,
} from './json-request.js';
import { OpenAiError } from './openai-error.js';
import { bodyReply, type Reply, type Route } from './reply.js';
import { countTokens } from './tokens.js';

const mostInputs = 2048;
const mostTokens = 8192;
const usualDimensions = 256;
const mostDimensions = 4096;

/** `POST /v1/embeddings` */
export const embeddingsRoute: Route = jsonRoute('/v1/embeddings', embed);

/** A text, or the tokens of one. */
type Input = string | readonly number[];

function embed({ body, directives }: JsonRequest): Reply {
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
  return bodyReply({
    status: 200,
    body: JSON.stringify({ object: 'list', data, model, usage }),
    manner: chatManner,
    directives: [...directives, ...asked],
  });
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
    if (tokens > mostTokens) {
      throw new OpenAiError(
        400,
        `This model's maximum context length is ${mostTokens} tokens, but '${param}' has ${tokens}.`,
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

function vectorOf(input: Input, dimensions: number): Float32Array {
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
