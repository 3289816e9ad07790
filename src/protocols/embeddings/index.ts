import { type TSchema, Type } from 'typebox';
import { bodyEstimate } from '../../conversation/estimate-usage.js';
import type { LeftOut } from '../../conversation/left-out.js';
import { inputMetering, marksOf, type StreamRules, wholeAnswers } from '../../conversation/stream-rules.js';
import { type Usage, withCharges } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { compileSchema, type MixedBody, requiring } from '../../schema/compile.js';
import { bodies, given, name, nullable, text } from '../../schema/members.js';
import { CLOSE_BRACKET, OPEN_BRACKET } from '../../wire/bytes.js';
import {
  countOf,
  countOrNone,
  isObject,
  type JsonObject,
  memberError,
  missingValue,
  objectAt,
} from '../../wire/json.js';
import { afterColon, lastObjectStart } from '../../wire/json-skip.js';
import { noEffects } from '../effects.js';
import {
  type Endpoint,
  judgeError,
  type OtherForm,
  type OtherFormRequest,
  plainEndpoint,
} from '../endpoint.js';
import { partsByModality } from '../modality-tokens.js';
import { modelPath, resourceName } from '../model-path.js';
import { createInputUsageReader } from '../openai-shared/usage.js';
import { amendedTo, embeddingsId, encodingAmender } from './encoding.js';

/*
 * Embeddings in two forms, each of which can be converted to the other: `POST /embeddings`
 * (https://platform.openai.com/docs/api-reference/embeddings/create), and `:embedContent` with `:batchEmbedContents`
 * (https://ai.google.dev/api/embeddings).
 */

export const openaiKey = Buffer.from('"embedding"');
const googleKey = Buffer.from('"values"');
export const { lastUsage: openaiUsage } = createInputUsageReader();
const metadataKey = Buffer.from('"usageMetadata"');

/** Reads the usage of an answer in the vendor's form. Its older models report none. */
function googleUsage(answer: Buffer): Usage | null {
  const told = objectAt(answer, lastObjectStart(answer, metadataKey));
  if (told === null) return null;
  const prompt = countOrNone(told.promptTokenCount);
  const input = prompt > 0 ? prompt : Math.max(prompt, countOrNone(told.totalTokenCount));
  if (input === -1) return null;
  const cached = countOf(told.cachedContentTokenCount);
  const usage = { input, output: 0, cached, cacheWritten: 0, reasoning: 0 };
  return withCharges(usage, { parts: partsByModality(told) });
}

/** The vendor refuses larger batches. Each text becomes a request with the model's name and the settings. */
const mostInBatch = 100;

export const openaiRules: StreamRules = wholeAnswers(openaiUsage, inputMetering, judgeError, ['"embedding"']);
const googleRules: StreamRules = {
  ...openaiRules,
  usageOf: googleUsage,
  marks: marksOf('"embedding"', '"embeddings"'),
};

/** Serves `POST /v1/embeddings` by an upstream that has the other form. */
export const openaiOnGoogle: OtherForm = {
  kinds: new Set(['generateContent']),
  upstreamPath: (model) => `${modelPath(model)}:batchEmbedContents`,
  rules: googleRules,
  convert: (body, names, leftOut) => {
    if (isConversation(body)) throw noConversation();
    const texts = inputTexts(body.input);
    leaveOthers(body, ['model', 'input', 'dimensions', 'encoding_format'], leftOut);
    const dimensions = wholeDimensions(body.dimensions);
    const requests = texts.map((text) => ({
      model: resourceName(names.upstream),
      content: { parts: [{ text }] },
      outputDimensionality: dimensions,
    }));
    const asBase64 = body.encoding_format === 'base64';
    return {
      body: JSON.stringify({ requests }),
      answer: (answer) => amendedTo(asBase64, openaiAnswer(answer, texts, names.client)),
    };
  },
};

/** Serves `:embedContent` by an upstream that has `/embeddings`. */
const contentOnOpenai: OtherForm = onOpenai((body, names, leftOut) => {
  const text = contentText(body.content, 'content');
  leaveOthers(body, contentNames, leftOut);
  return openaiRequest([text], body, names.upstream, (vectors, usage) =>
    Buffer.concat([Buffer.from('{"embedding":{"values":'), ...vectors, Buffer.from(`}${usage}}`)]),
  );
});

/** Serves `:batchEmbedContents` in the same way. */
const contentsOnOpenai: OtherForm = onOpenai((body, names, leftOut) => {
  const requests = Array.isArray(body.requests) ? body.requests.filter(isObject) : [];
  if (requests.length === 0) throw invalid('requests', 'must name at least one text.');
  leaveOthers(body, ['model', 'requests'], leftOut);
  for (const request of requests) leaveOthers(request, contentNames, leftOut);
  const texts = requests.map(({ content }, index) => contentText(content, `requests[${index}].content`));
  const [first = {}] = requests;
  const odd = requests.findIndex((request) => dimensionsOf(request) !== dimensionsOf(first));
  if (odd !== -1)
    throw invalid(
      `requests[${odd}].outputDimensionality`,
      'must be that of the others: the upstream of this model makes all vectors of a call of one length.',
    );
  return openaiRequest(texts, first, names.upstream, (vectors, usage) =>
    Buffer.concat([
      Buffer.from('{"embeddings":['),
      ...listed(vectors, () => '{"values":', '}'),
      Buffer.from(`]${usage}}`),
    ]),
  );
});

function onOpenai(convert: OtherForm['convert']): OtherForm {
  return {
    kinds: new Set(['chat']),
    upstreamPath: () => '/embeddings',
    rules: openaiRules,
    convert,
  };
}

const contentNames = ['model', 'content', 'outputDimensionality', 'output_dimensionality'];

function dimensionsOf(request: JsonObject): unknown {
  return request.outputDimensionality ?? request.output_dimensionality ?? undefined;
}

/** @param write makes the whole answer from the vectors in order and the usage */
function openaiRequest(
  texts: readonly string[],
  settings: JsonObject,
  model: string,
  write: (vectors: readonly Buffer[], usage: string) => Buffer,
): OtherFormRequest {
  const input = texts.length === 1 ? texts[0] : texts;
  return {
    body: JSON.stringify({ model, input, dimensions: dimensionsOf(settings) }),
    answer: (answer) => {
      const usage = openaiUsage(answer);
      const count = usage?.input ?? 0;
      return write(
        vectorsInOrder(cutVectors(amendedTo(false, answer), openaiKey), texts.length),
        usage === null ? '' : `,"usageMetadata":{"promptTokenCount":${count},"totalTokenCount":${count}}`,
      );
    },
  };
}

/** Returns the vectors in the order of their indexes. @throws {GatewayError} `upstream_error` if one is missing */
export function vectorsInOrder({ rest, vectors }: CutAnswer, count: number): readonly Buffer[] {
  const data = isObject(rest) && Array.isArray(rest.data) ? rest.data : [];
  const ordered: (Buffer | undefined)[] = Array.from({ length: count });
  for (const [position, item] of data.entries()) {
    if (!isObject(item) || typeof item.embedding !== 'number') continue;
    const index = typeof item.index === 'number' ? item.index : position;
    if (index in ordered) ordered[index] = vectors[item.embedding];
  }
  return complete(ordered);
}

function complete(vectors: readonly (Buffer | undefined)[]): readonly Buffer[] {
  const all = vectors.filter((vector) => vector !== undefined);
  if (all.length !== vectors.length) throw unusable('fewer embeddings than texts');
  return all;
}

/** Writes the vectors as elements of a list, with a prefix and suffix for each. */
export function listed(
  vectors: readonly Buffer[],
  before: (index: number) => string,
  behind: string,
): readonly Buffer[] {
  return vectors.flatMap((vector, index) => [
    Buffer.from((index === 0 ? '' : ',') + before(index)),
    vector,
    Buffer.from(behind),
  ]);
}

function openaiAnswer(answer: Buffer, texts: readonly string[], model: string): Buffer {
  const { rest, vectors } = cutVectors(answer, googleKey);
  const given = isObject(rest) && Array.isArray(rest.embeddings) ? rest.embeddings : [];
  const ordered = complete(
    texts.map((_, index) => {
      const each: unknown = given[index];
      return isObject(each) && typeof each.values === 'number' ? vectors[each.values] : undefined;
    }),
  );
  // Clients read the usage without checking that it is present.
  const told = googleUsage(answer)?.input ?? 0;
  const tokens = told > 0 ? told : bodyEstimate(Buffer.from(texts.join('\n')));
  return Buffer.concat([
    Buffer.from(`{"id":"${embeddingsId()}","object":"list","data":[`),
    ...listed(ordered, (index) => `{"object":"embedding","index":${index},"embedding":`, '}'),
    Buffer.from(
      `],"model":${JSON.stringify(model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`,
    ),
  ]);
}

/**
 * Reads the length of vectors, which is written beside each text. @throws {GatewayError} with status 400 for an invalid
 * length
 */
function wholeDimensions(given: unknown): number | undefined {
  if (given === null || given === undefined) return undefined;
  if (typeof given === 'number' && Number.isSafeInteger(given) && given > 0) return given;
  throw invalid('dimensions', 'must be a whole number above zero.');
}

/**
 * Reads the texts of `input`.
 * @throws {GatewayError} with status 400 for more texts than a batch may have, for tokens, and for anything else but
 * text
 */
function inputTexts(input: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(input) ? input : [input];
  if (all.length === 0) throw invalid('input', 'must name at least one text.');
  if (all.length > mostInBatch)
    throw invalid(
      'input',
      `may have at most ${mostInBatch} texts for this model, whose upstream takes no more at once: ` +
        'send them in several calls.',
    );
  return all.map((one, index) => {
    if (typeof one === 'string') return one;
    throw notText(Array.isArray(input) ? `input[${index}]` : 'input');
  });
}

/** Reads the text of a content, whose parts form one text. @throws {GatewayError} with status 400 for other parts */
function contentText(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  const parts: unknown = isObject(content) ? content.parts : undefined;
  const all: readonly unknown[] = Array.isArray(parts) ? parts : [parts];
  const texts = all.map((part, index) => {
    if (isObject(part) && typeof part.text === 'string') return part.text;
    throw notText(`${at}.parts[${index}]`);
  });
  if (texts.length === 0) throw invalid(`${at}.parts`, 'must have a text.');
  return texts.join('\n');
}

/** vLLM also embeds a conversation: https://docs.vllm.ai/en/stable/serving/openai_compatible_server/ */
function isConversation({ input, messages }: JsonObject): boolean {
  return (input ?? null) === null && (messages ?? null) !== null;
}

function noConversation(): GatewayError {
  return memberError(
    'unsupported_parameter',
    'messages',
    "'messages' cannot be embedded for this model, whose upstream has embeddings in another form: send texts as 'input'.",
  );
}

function leaveOthers(body: JsonObject, known: readonly string[], leftOut: LeftOut): void {
  for (const [name, value] of Object.entries(body))
    if (value !== null && !known.includes(name)) leftOut.add(name);
}

function notText(at: string): GatewayError {
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}' is no text: for this model, whose upstream has embeddings in another form, send texts.`,
  );
}

function invalid(param: string, what: string): GatewayError {
  return memberError('invalid_value', param, `'${param}' ${what}`);
}

/** By byte: 1 if a flat list of numbers may contain it. */
const listBytes = new Uint8Array(256);
for (const character of '0123456789+-.eE, \t\r\n') listBytes[character.charCodeAt(0)] = 1;

/** An answer without its vectors, and their JSON texts: parsing millions of numbers is avoided. */
interface CutAnswer {
  /** The parsed answer, with the index of each vector in its place. */
  readonly rest: unknown;
  readonly vectors: readonly Buffer[];
}

/**
 * Cuts the lists of numbers that are the values of a member out of an answer.
 * @param key name of the member including its quotes, which a string could only contain in escaped form
 * @throws {GatewayError} `upstream_error` for invalid JSON, and for lists of anything but numbers
 */
export function cutVectors(answer: Buffer, key: Buffer): CutAnswer {
  const pieces: Buffer[] = [];
  const vectors: Buffer[] = [];
  let from = 0;
  for (let at = answer.indexOf(key); at !== -1; at = answer.indexOf(key, at)) {
    const value = afterColon(answer, at + key.length - 1);
    at += key.length;
    if (value === -1 || answer[value] !== OPEN_BRACKET) continue;
    const end = answer.indexOf(CLOSE_BRACKET, value) + 1;
    if (!isListOfNumbers(answer, value + 1, end - 1)) throw unusable('a vector that is no list of numbers');
    pieces.push(answer.subarray(from, value), Buffer.from(String(vectors.length)));
    vectors.push(answer.subarray(value, end));
    from = end;
    at = end;
  }
  pieces.push(answer.subarray(from));
  try {
    return { rest: JSON.parse(Buffer.concat(pieces).toString('utf8')) as unknown, vectors };
  } catch {
    throw unusable('an answer that is no JSON');
  }
}

function isListOfNumbers(bytes: Buffer, from: number, end: number): boolean {
  if (end < from) return false;
  for (let at = from; at < end; at++) if (listBytes[bytes[at] as number] === 0) return false;
  return true;
}

/** Makes the error for a response that is not an answer. @param what for the log */
export function unusable(what: string): GatewayError {
  return new GatewayError('upstream_error', 'The upstream returned something other than embeddings.', {
    cause: what,
  });
}

/** `POST /v1/embeddings`, and `POST /v1/engines/{model}/embeddings` after the model was added to the body. */
export const embeddings: Endpoint = {
  ...plainEndpoint,
  ...openaiRules,
  protocol: 'embeddings',
  upstreamPath: () => '/embeddings',
  otherForms: [openaiOnGoogle],
  amender: encodingAmender,
  hasEffects: noEffects,
};

/** `POST /v1beta/models/{model}:embedContent` */
export const embedContent: Endpoint = googleEndpoint('embedContent', contentOnOpenai);

/** `POST /v1beta/models/{model}:batchEmbedContents`. The vendor's SDKs also use it for a single content. */
export const batchEmbedContents: Endpoint = googleEndpoint('batchEmbedContents', contentsOnOpenai);

function googleEndpoint(operation: string, otherForm: OtherForm): Endpoint {
  return {
    ...plainEndpoint,
    ...googleRules,
    protocol: 'embeddings',
    upstreamPath: (model) => `${modelPath(model)}:${operation}`,
    modelInBody: false,
    otherForms: [otherForm],
    hasEffects: noEffects,
  };
}

const bounds = { minItems: 1, maxItems: 2048 };
const many = (items: TSchema) => Type.Array(items, bounds);
const filled = Type.String({ minLength: 1 });
/** One text as tokens. The upstream judges its length. */
const tokens = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });

const members = {
  // The most general form is last: for a list that matches none, the error describes the last one.
  input: Type.Union([filled, tokens, many(tokens), many(filled)]),
  encoding_format: nullable(Type.Enum(['float', 'base64'])),
  dimensions: nullable(Type.Integer({ minimum: 1 })),
  user: text,
};

/** Body of `POST /v1/embeddings` as in the API document. `embeddingsRequest` checks less. */
export const embeddingsRequestType = Type.Object({ model: name, ...members });

/** Body of `POST /v1/engines/{model}/embeddings`, whose path names the model. */
export const engineEmbeddingsRequestType = Type.Object({ model: text, ...members });

/** Bodies of other endpoints, recognized by the member with their input. */
const embeddingsMixedBody: MixedBody = {
  own: 'input',
  foreign: [bodies.completions, bodies.rerank, bodies.generateContent],
};

/** What a conversation is, and how often it is there, only an upstream judges that embeds some. */
const hasInput = (body: unknown) => isObject(body) && ('input' in body || 'messages' in body);

/** Members that may occur only once, and only in this spelling. */
const guarded = { reads: Object.keys(embeddingsRequestType.properties) };

/** Checks a body of `POST /v1/embeddings`, which is passed on unchanged. */
export const embeddingsRequest = requiring(
  compileSchema(Type.Object({ model: name, input: Type.Optional(given) }), embeddingsMixedBody, guarded),
  hasInput,
  () => missingValue('input', 'a string or an array'),
);

/** Checks a body of `POST /v1/engines/{model}/embeddings`. */
export const engineEmbeddingsRequest = requiring(
  compileSchema(Type.Object({ model: text, input: Type.Optional(given) }), embeddingsMixedBody, guarded),
  hasInput,
  () => missingValue('input', 'a string or an array'),
);

const dimensionality = nullable(Type.Integer({ minimum: 1 }));
const contentMembers = {
  model: text,
  content: Type.Object({ parts: Type.Array(Type.Object({ text })) }),
  taskType: text,
  title: text,
  outputDimensionality: dimensionality,
};

/** Body of `POST /v1beta/models/{model}:embedContent`. */
export const embedContentRequestType = Type.Object(contentMembers);

/** Body of `POST /v1beta/models/{model}:batchEmbedContents`. */
export const batchEmbedContentsRequestType = Type.Object({
  requests: Type.Array(embedContentRequestType, { minItems: 1 }),
});

const contentReads = [...Object.keys(contentMembers), 'task_type', 'output_dimensionality'];

/** Checks a body of `POST /v1beta/models/{model}:embedContent`, which is passed on unchanged. */
export const embedContentRequest = compileSchema(
  Type.Object({ model: text, content: given }),
  {
    own: 'content',
    foreign: [bodies.batchEmbedContents, bodies.generateContent, bodies.embeddings],
  },
  { reads: contentReads },
);

/** Checks a body of `POST /v1beta/models/{model}:batchEmbedContents`, whose parts also name the model. */
export const batchEmbedContentsRequest = compileSchema(
  Type.Object({ requests: Type.Array(Type.Object({ model: text, content: given })) }),
  {
    own: 'requests',
    foreign: [bodies.embedContent, bodies.generateContent, bodies.embeddings],
  },
  { within: { requests: { reads: contentReads, notes: ['model'], isList: true } } },
);

/** Body of `POST /v1/embed` and `POST /v2/embed`, as Cohere's clients send it. */
export const embedRequestType = Type.Object({
  model: name,
  texts: nullable(Type.Array(Type.String(), { minItems: 1 })),
  inputs: nullable(Type.Array(Type.Object({ content: Type.Array(Type.Object({ type: text, text })) }))),
  input_type: text,
  embedding_types: nullable(Type.Array(Type.Enum(['float', 'base64']))),
  output_dimension: nullable(Type.Integer({ minimum: 1 })),
  truncate: text,
  max_tokens: nullable(Type.Integer({ minimum: 1 })),
});

/** Checks such a body. Its texts are only checked when it is converted for an upstream. */
export const embedRequest = compileSchema(
  Type.Object({ model: name }),
  { own: 'texts', foreign: [bodies.chat, bodies.embeddings] },
  { reads: [...Object.keys(embedRequestType.properties), 'images'] },
);
