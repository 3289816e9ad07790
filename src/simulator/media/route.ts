import { createHash } from 'node:crypto';
import { chatFormat } from '../chat/route.js';
import { type Directive, DirectiveError } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import { headerOf } from '../http/protocol-route.js';
import {
  type AnswerFormat,
  bodyReply,
  type Reply,
  type Route,
  type SimulatorRequest,
} from '../http/reply.js';
import { OpenAiError, openAiErrorBody } from '../openai/error.js';

/** A request that a vendor refuses with a code of its own. */
export class VendorError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string | number, message: string) {
    super(message);
    this.status = status;
    this.code = String(code);
  }
}

/** A request about media: JSON, a form, or none of both. */
export interface MediaRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  /** Hexadecimal digest of target and body: what ids are made from. */
  readonly digest: string;
  /** Where the client reaches the simulator: `http://127.0.0.1:8080`. */
  readonly origin: string;
  readonly answerFormat: AnswerFormat;
  /** From the header. */
  readonly directives: readonly Directive[];
  /** The value of a header by its name in lower case. */
  header(name: string): string | undefined;
}

interface MediaRouteParts {
  readonly methods: readonly string[];
  readonly path: string | RegExp;
  readonly answerFormat: (digest: string) => AnswerFormat;
  /** May throw an `OpenAiError`, a `VendorError` or a `DirectiveError`. */
  readonly answer: (asked: MediaRequest) => Reply | Promise<Reply>;
}

/** A route for each method, which words everything, refusals too, in its vendor's format. */
export function mediaRoutes(parts: MediaRouteParts): Route[] {
  return parts.methods.map((method) => ({
    method,
    path: parts.path,
    handle: (request) => handle(request, parts),
  }));
}

async function handle(request: SimulatorRequest, parts: MediaRouteParts): Promise<Reply> {
  const { method, target, body, directives } = request;
  const digest = createHash('sha256').update(target).update('\n').update(body).digest('hex');
  const answerFormat = parts.answerFormat(digest);
  const at = target.indexOf('?');
  const header = (name: string): string | undefined => headerOf(request, name);
  const asked: MediaRequest = {
    method,
    path: at < 0 ? target : target.slice(0, at),
    query: new URLSearchParams(at < 0 ? '' : target.slice(at)),
    body,
    digest,
    origin: `http://${header('host') ?? '127.0.0.1'}`,
    answerFormat,
    directives,
    header,
  };
  const reply = await answered(asked, parts);
  return { ...reply, headers: { ...reply.headers, 'x-request-id': `sim-${digest.slice(0, 16)}` } };
}

async function answered(asked: MediaRequest, parts: MediaRouteParts): Promise<Reply> {
  const { answerFormat, directives } = asked;
  try {
    return await parts.answer(asked);
  } catch (error) {
    if (error instanceof OpenAiError) {
      return bodyReply({ status: error.status, body: openAiErrorBody(error), answerFormat, directives });
    }
    if (error instanceof VendorError) {
      const { status, message, code } = error;
      return bodyReply({
        status,
        body: answerFormat.errorBody(status, message, code),
        answerFormat,
        directives,
      });
    }
    if (error instanceof DirectiveError) {
      return bodyReply({
        status: 400,
        body: answerFormat.errorBody(400, error.message, 'unknown_fault'),
        answerFormat,
      });
    }
    throw error;
  }
}

/** The media type of the body in lower case, without parameters. */
export function contentTypeOf(asked: MediaRequest): string {
  return (asked.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/**
 * The body of a request to a vendor that takes JSON alone.
 * @param code what the vendor calls a body that it cannot read
 */
export function vendorBody(asked: MediaRequest, code: string | number): JsonObject {
  if (contentTypeOf(asked) !== 'application/json') {
    throw new VendorError(400, code, 'The content type must be application/json.');
  }
  let body: unknown;
  try {
    body = JSON.parse(asked.body.toString());
  } catch {
    throw new VendorError(400, code, 'The body is not valid JSON.');
  }
  if (!isObject(body)) {
    throw new VendorError(400, code, 'The body is not a JSON object.');
  }
  return body;
}

/** A UUID that follows from a digest: how vendors name requests. */
export function requestIdOf(digest: string): string {
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** A body that is no text: errors are worded as in the OpenAI family. */
export const binaryFormat: AnswerFormat = {
  ...chatFormat,
  errorEvent: () => chatFormat.errorBody(500),
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
  return { ...chatFormat, contentEvent: (text) => typedEvent(event(text)), eventsBeforeContent: 0 };
}
