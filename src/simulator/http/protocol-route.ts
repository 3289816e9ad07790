import { createHash } from 'node:crypto';
import { type Directive, DirectiveError } from '../faults/directives.js';
import { isObject, type JsonObject } from './json.js';
import { type AnswerFormat, bodyReply, type Reply, type Route, type SimulatorRequest } from './reply.js';

/** A request that is refused, in the words of whatever protocol it came in. */
export class RequestError extends Error {
  readonly status: number;
  /** What programs tell it by, where the protocol has such a thing. */
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** A request with a JSON object as its body. */
export interface ProtocolRequest {
  readonly body: JsonObject;
  /** Path and query. */
  readonly target: string;
  /** Hexadecimal digest of the body: what ids are made from. */
  readonly digest: string;
  readonly answerFormat: AnswerFormat;
  /** From the header. */
  readonly directives: readonly Directive[];
  /** The value of a header by its name in lower case. */
  header(name: string): string | undefined;
}

interface ProtocolRouteParts {
  readonly path: string | RegExp;
  readonly answerFormat: (target: string, digest: string) => AnswerFormat;
  readonly headers?: (digest: string) => Readonly<Record<string, string>>;
  /** May throw a `RequestError` or a `DirectiveError`. */
  readonly answer: (request: ProtocolRequest) => Reply;
}

/** A `POST` route that takes JSON and words everything, refusals too, in its protocol's format. */
export function protocolRoute(parts: ProtocolRouteParts): Route {
  return { method: 'POST', path: parts.path, handle: (request) => handle(request, parts) };
}

function handle(request: SimulatorRequest, parts: ProtocolRouteParts): Reply {
  const { target, directives } = request;
  const digest = createHash('sha256').update(request.body).digest('hex');
  const answerFormat = parts.answerFormat(target, digest);
  const header = (name: string): string | undefined => headerOf(request, name);
  const reply = answered(answerFormat, directives, () =>
    parts.answer({ body: parse(request.body), target, digest, answerFormat, directives, header }),
  );
  return { ...reply, headers: { ...reply.headers, ...parts.headers?.(digest) } };
}

function answered(answerFormat: AnswerFormat, directives: readonly Directive[], answer: () => Reply): Reply {
  try {
    return answer();
  } catch (error) {
    if (error instanceof RequestError) {
      const { status, message, code } = error;
      const body = answerFormat.errorBody(status, message, code);
      return bodyReply({ status, body, answerFormat, directives });
    }
    if (error instanceof DirectiveError) {
      return bodyReply({ status: 400, body: answerFormat.errorBody(400, error.message), answerFormat });
    }
    throw error;
  }
}

/** The value of a request's header by its name in lower case. */
export function headerOf({ rawHeaders }: SimulatorRequest, name: string): string | undefined {
  const at = rawHeaders.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : rawHeaders[at + 1];
}

function parse(bytes: Buffer): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString());
  } catch {
    throw new RequestError(400, 'The body is not valid JSON.');
  }
  if (!isObject(body)) {
    throw new RequestError(400, 'The body is not a JSON object.');
  }
  return body;
}
