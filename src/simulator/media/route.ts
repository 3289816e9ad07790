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
 * The body of a request to a vendor that takes JSON alone.
 * @param code what the vendor calls a body that it cannot read
 */
export function vendorBody(asked: RouteRequest, code: string): JsonObject {
  if (contentTypeOf(asked) !== 'application/json') {
    throw new RequestError(400, 'The content type must be application/json.', null, code);
  }
  return parseObject(asked.body, code);
}

/**
 * How a vendor words errors that has codes of its own.
 * @param isOwn whether a code is one of them; one of another family is none
 * @param body its error body
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

/** A UUID that follows from a digest: how vendors name requests. */
export function requestIdOf(digest: string): string {
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** A body that is no text: errors are worded as in the OpenAI family. */
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

/** Text of an event as the OpenAI family streams media: its type is a member of the data, and the event's name. */
export function typedEvent(event: TypedEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** A stream whose content comes in events of one type. */
export function eventFormat(event: (text: string) => TypedEvent): AnswerFormat {
  return { ...openaiFormat, contentEvent: (text) => typedEvent(event(text)), eventsBeforeContent: 0 };
}
