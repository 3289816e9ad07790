import type { JsonObject } from '../http/json.js';
import type { AnswerFormat } from '../http/reply.js';
import { askedForStatus, RequestError } from '../http/request-error.js';
import { parseObject, type RouteRequest } from '../http/route.js';
import { openaiFormat } from '../openai/format.js';

/** The media type of the body in lower case, without parameters. */
export function contentTypeOf(asked: RouteRequest): string {
  return (asked.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/**
 * The body of a request to a vendor that accepts only JSON.
 * @param code the vendor's error code for an unreadable body
 */
export function vendorBody(asked: RouteRequest, code: string): JsonObject {
  if (contentTypeOf(asked) !== 'application/json') {
    throw new RequestError(400, 'The content type must be application/json.', null, code);
  }
  return parseObject(asked.body, code);
}

/**
 * The answer format of a vendor with error codes of its own.
 * @param isOwn matches the vendor's codes, not those of other families
 * @param body builds its error body
 */
export function vendorFormat(
  codeOf: (status: number) => string,
  isOwn: RegExp,
  body: (code: string, message: string) => string,
): AnswerFormat {
  const errorBody: AnswerFormat['errorBody'] = ({ status, message, code }) =>
    body(isOwn.test(code ?? '') ? String(code) : codeOf(status), message);
  return { ...openaiFormat, errorBody, errorEvent: () => errorBody(askedForStatus(500)) };
}

/** A UUID derived from a digest, as vendors use for request ids. */
export function requestIdOf(digest: string): string {
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** The answer format of binary bodies, with the errors of the OpenAI family. */
export const binaryFormat: AnswerFormat = {
  ...openaiFormat,
  errorEvent: () => openaiFormat.errorBody(askedForStatus(500)),
  contentEvent: (text) => text,
  eventsBeforeContent: 0,
};

/** Data of an event. */
interface TypedEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Text of an event of the OpenAI family's media streams, with its type both in the data and as the event's name. */
export function typedEvent(event: TypedEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The answer format of a stream with its content in events of one type. */
export function eventFormat(event: (text: string) => TypedEvent): AnswerFormat {
  return { ...openaiFormat, contentEvent: (text) => typedEvent(event(text)), eventsBeforeContent: 0 };
}
