import { speech } from '../protocols/audio/index.js';
import type { Route } from '../routes.js';
import { videoVariant } from '../video/variants.js';
import { modelAnswers, taskAnswers } from './answers.js';
import { type ErrorResponses, errorResponsesOf, headerReferences } from './error-responses.js';
import type { OperationWords } from './operation-words.js';
import { type NamedSchema, schemaReference } from './schemas.js';
import type { Content, JsonSchema, Reference, Response } from './types.js';

const someObject: JsonSchema = { type: 'object' };
const events: JsonSchema = {
  type: 'string',
  description: 'Server-sent events of the protocol. One that fails midway ends with an error event.',
};
/** OpenAPI 3.1 describes bytes by no schema at all. */
const bytes = { schema: {} };

/**
 * Every answer of an operation, by status.
 * @param errors gets the error answers that are not in it yet
 */
export function responsesOf(
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

/** @throws {Error} for an operation that has no JSON answer */
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

/** What a call of a model is answered with. */
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
