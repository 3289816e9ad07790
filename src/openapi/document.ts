import type { VendorWords } from '../config/types.js';
import { speech } from '../protocols/audio/index.js';
import type { AuthStyle } from '../protocols/credentials/credentials.js';
import { buildRoutes, type Route } from '../routes.js';
import { videoVariant } from '../video/task.js';
import { modelAnswers, taskAnswers } from './answers.js';
import {
  type ErrorResponses,
  errorBodies,
  errorResponsesOf,
  headerReferences,
  responseHeaders,
} from './error-responses.js';
import type { Content, JsonSchema, Reference, Response } from './json-schema.js';
import { createOperationWords, type OperationWords } from './operation-words.js';
import { describeParameters, parametersOf, placeRoutes } from './parameters.js';
import { requestBodyOf, requestSchemas } from './request-bodies.js';
import { type NamedSchema, schemaReference, writeSchemas } from './schemas.js';

interface OpenApiOptions {
  /** Version of the gateway. */
  readonly version: string;
  /** Base URL for clients, without a trailing slash; null for the URL from which they got the document. */
  readonly publicUrl: string | null;
  /** Real vendor words, whose paths and headers are listed beside the neutral ones. */
  readonly words: VendorWords;
}

/**
 * Describes the gateway's whole HTTP API, from its table of routes and the schemas that check its requests.
 * @returns an OpenAPI 3.1 document: a new object of plain JSON, the same for the same options
 * @throws {Error} for a route without a description; routes do not depend on the config, so the first call shows it
 */
export function createOpenApi({ version, publicUrl, words }: OpenApiOptions) {
  const shared = describeParameters(words);
  const security = describeSecurity(words);
  const wordsOf = createOperationWords(words);
  const errors: ErrorResponses = new Map();
  const paths: Record<string, Record<string, object>> = {};
  const usedTags = new Set<string>();
  for (const placed of placeRoutes(buildRoutes(words))) {
    const { route, template } = placed;
    const operationWords = wordsOf(route);
    const parameters = parametersOf(placed, shared, words);
    const requestBody = requestBodyOf(route);
    const tag = tagOf(route);
    usedTags.add(tag);
    paths[template] = {
      ...paths[template],
      [route.method.toLowerCase()]: {
        operationId: operationWords.id,
        tags: [tag],
        summary: operationWords.summary,
        ...described(operationWords),
        ...(parameters.length === 0 ? {} : { parameters }),
        ...(requestBody === null ? {} : { requestBody }),
        responses: responsesOf(route, operationWords, errors),
        security: security.requirements[route.auth],
      },
    };
  }
  const document = {
    openapi: '3.1.0',
    info: { title: 'Multi-Protocol Model Gateway API', version, description: about },
    servers: [{ url: publicUrl ?? '/' }],
    tags: Object.entries(tags)
      .filter(([name]) => usedTags.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: writeSchemas([
        ...requestSchemas,
        ...Object.values(modelAnswers).flatMap(({ one, list }) => [one, list]),
        ...Object.values(taskAnswers),
        ...errorBodies,
      ]),
      responses: Object.fromEntries(errors),
      parameters: shared,
      headers: responseHeaders,
      securitySchemes: security.schemes,
    },
  };
  // A copy, since parts used in several places are one object: changing one must not change the others.
  return JSON.parse(JSON.stringify(document)) as typeof document;
}

const about =
  'An HTTP gateway in front of AI models. The protocol, not the name of the model, decides the path, the body, the ' +
  'place of the key and the form of a stream. Clients of the chat and responses protocols take `/v1` as the end of ' +
  'their base URL; those of the messages and generateContent protocols append the whole path. Members of a body that ' +
  'no schema names are passed on. The `/v1` paths of the chat family are served behind `/openai` as well, with the ' +
  'version and without; those of them that call a model also below `/openai/deployments/{model}`, for clients of Azure. All are ' +
  'served behind `/v1/openai` and `/v1beta/openai` in place of `/v1`, for clients of DeepInfra and of Gemini’s OpenAI-compatible API. Those of ' +
  'the messages protocol and the lists of models are served behind `/anthropic`. Content is generated, and its tokens are ' +
  'counted, under `/v1beta1/publishers/google/models` and ' +
  '`/v1beta1/projects/{project}/locations/{location}/publishers/google/models`, too, and under `/v1` in place of `/v1beta1`. ' +
  'Everything under `/v1beta` is served under `/v1alpha` as well.';

const tags = {
  chat: 'Chat completions.',
  responses: 'Responses.',
  messages: 'Messages.',
  generateContent: 'generateContent and what belongs to it.',
  completions: 'Text completions.',
  embeddings: 'Embeddings.',
  rerank: 'Ordering documents.',
  moderations: 'Moderation.',
  audio: 'Transcription, translation and speech.',
  images: 'Making and editing images.',
  video: 'Video tasks in four formats.',
  realtime: 'Realtime sessions over a WebSocket.',
  models: 'The models of a key.',
  unimplemented: 'Known and answered with 501.',
} as const;

function tagOf({ protocol, operation }: Route): keyof typeof tags {
  if (protocol !== null) return protocol;
  if (operation === 'unimplemented') return operation;
  return operation === 'responsesSocket' ? 'responses' : 'models';
}

function described({ more }: OperationWords): { readonly description?: string } {
  return more === null ? {} : { description: more };
}

/**
 * The security schemes by where keys are sent, and the schemes of each auth style.
 * @param words real vendor words, each of which adds a header name
 */
function describeSecurity(words: VendorWords) {
  const vendorgHeaders = [...new Set(['vendorg', ...words.vendorg])].map((word) => `x-${word}-api-key`);
  const vendorg = Object.fromEntries(
    vendorgHeaders.map((name) => [name, header(name, 'A key of the generateContent protocol.')]),
  );
  const anyOf = (...names: readonly string[]) => names.map((name) => ({ [name]: [] }));
  const google = [...vendorgHeaders, 'key'];
  return {
    schemes: {
      bearer: { type: 'http', scheme: 'bearer', description: 'An API key as a bearer token.' },
      'x-api-key': header('x-api-key', 'A key of the messages protocol, with a version header beside it.'),
      'api-key': header('api-key', 'An API key as clients of Azure send it.'),
      ...vendorg,
      key: {
        type: 'apiKey',
        in: 'query',
        name: 'key',
        description: 'A key of the generateContent protocol.',
      },
      socketProtocol: header(
        'sec-websocket-protocol',
        'For browsers, which can set no other header: `openai-insecure-api-key.` and the API key as one of the subprotocols.',
      ),
    },
    requirements: {
      bearer: anyOf('bearer', 'api-key'),
      messages: anyOf('x-api-key', 'bearer', 'api-key'),
      generateContent: anyOf(...google, 'bearer', 'api-key'),
      modelList: anyOf('bearer', 'api-key', 'x-api-key', ...google),
      realtime: anyOf('bearer', 'api-key', 'socketProtocol'),
    } satisfies Record<AuthStyle, object>,
  };
}

function header(name: string, description: string) {
  return { type: 'apiKey', in: 'header', name, description };
}

const someObject: JsonSchema = { type: 'object' };
const events: JsonSchema = {
  type: 'string',
  description: 'Server-sent events of the protocol. One that fails midway ends with an error event.',
};
/** OpenAPI 3.1 describes binary content by an empty schema. */
const bytes = { schema: {} };

/**
 * All answers of an operation, by status.
 * @param errors error answers so far; new ones are added
 */
function responsesOf(
  route: Route,
  words: OperationWords,
  errors: ErrorResponses,
): Readonly<Record<string, Response | Reference>> {
  return { ...goodResponses(route, words), ...errorResponsesOf(route, errors) };
}

function goodResponses(route: Route, { answer }: OperationWords): Readonly<Record<string, Response>> {
  switch (route.operation) {
    case 'unimplemented':
      return {};
    case 'realtime':
    case 'responsesSocket':
      return { 101: { description: 'The connection is a WebSocket from here on.' } };
    case 'videoContent':
      return contentResponses(route, answer);
    default:
      return { 200: { description: answer, headers: headersOf(route), content: contentOf(route) } };
  }
}

function headersOf({ endpoint }: Route): Readonly<Record<string, Reference>> {
  return endpoint === null ? headerReferences() : headerReferences('x-gateway-path', 'x-gateway-left-out');
}

/** @throws {Error} for an operation without a JSON answer */
function contentOf(route: Route): Content {
  switch (route.operation) {
    case 'call':
    case 'upload':
    case 'image':
      return answerOf(route);
    case 'modelList':
      return json(anyOf(Object.values(modelAnswers).map(({ list }) => list)));
    case 'model':
      return json(anyOf(Object.values(modelAnswers).map(({ one }) => one)));
    case 'googleModelList':
      return json(schemaReference(modelAnswers.generateContent.list));
    case 'googleModel':
      return json(schemaReference(modelAnswers.generateContent.one));
    case 'responseShow':
    case 'responseDelete':
    case 'responseItems':
    case 'responseCancel':
      return json(someObject);
    case 'videoCreate':
    case 'videoShow':
    case 'videoAction':
      return json(schemaReference(taskAnswers[route.video?.format ?? 'generic']));
    default:
      throw new Error(`The operation ${route.operation} has no JSON answer.`);
  }
}

/** The answer to a call of a model. */
function answerOf({ operation, endpoint, stream, image }: Route): Content {
  const mayStream = stream !== 'never' || image !== null || endpoint?.streamsUnasked === true;
  return {
    ...(endpoint === speech ? { 'audio/mpeg': bytes, 'audio/*': bytes } : {}),
    ...(endpoint === speech
      ? {}
      : json(stream === 'byQuery' ? { type: 'array', items: someObject } : someObject)),
    ...(operation === 'upload' ? { 'text/plain': { schema: { type: 'string' } } } : {}),
    ...(mayStream ? { 'text/event-stream': { schema: events } } : {}),
  };
}

function contentResponses({ method }: Route, answer: string): Readonly<Record<string, Response>> {
  const headers = headerReferences('accept-ranges', 'etag');
  const notModified: Response = { description: 'The client has the file already.', headers };
  if (method === 'HEAD') return { 200: { description: answer, headers }, 304: notModified };
  const types = ['video', 'thumbnail', 'spritesheet'].map((name) => videoVariant(name).contentType);
  const content = Object.fromEntries(types.map((type) => [type, bytes]));
  return {
    200: { description: answer, headers, content },
    206: {
      description: 'The part of the file that was asked for.',
      headers: headerReferences('accept-ranges', 'etag', 'content-range'),
      content,
    },
    304: notModified,
  };
}

function json(schema: JsonSchema | Reference): Content {
  return { 'application/json': { schema } };
}

function anyOf(schemas: readonly NamedSchema[]): JsonSchema {
  return { anyOf: schemas.map(schemaReference) };
}
