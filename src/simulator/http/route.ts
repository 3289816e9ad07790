import { createHash } from 'node:crypto';
import type { Directive } from '../faults/directives.js';
import { openaiFormat } from '../openai/format.js';
import { isObject, type JsonObject } from './json.js';
import { type AnswerFormat, bodyReply, type Reply, type Route, type SimulatorRequest } from './reply.js';
import { RequestError } from './request-error.js';

/** A request as passed to its route, with its body as bytes or as a JSON object. */
export interface RouteRequest<Body = Buffer> {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Body;
  /** Hexadecimal digest of the body, or of the target without a body, from which ids are made. */
  readonly digest: string;
  /** The simulator's origin for the client: `http://127.0.0.1:8080`. */
  readonly origin: string;
  readonly answerFormat: AnswerFormat;
  /** Directives of the header. */
  readonly directives: readonly Directive[];
  /** The value of a header by its name in lower case. */
  header(name: string): string | undefined;
}

/** A request whose body is a JSON object. */
export type JsonRequest = RouteRequest<JsonObject>;

interface RouteParts<Body> {
  /** Default `POST`. */
  readonly methods?: readonly string[];
  readonly path: string | RegExp;
  /** Default: the OpenAI family's. */
  readonly answerFormat?: (digest: string, query: URLSearchParams) => AnswerFormat;
  /** Headers of every answer; default an `x-request-id`. */
  readonly headers?: (digest: string) => Readonly<Record<string, string>>;
  /** May throw a `RequestError`. */
  readonly answer: (asked: RouteRequest<Body>) => Reply | Promise<Reply>;
}

/** A route for each method, whose answers and refusals are in its format. */
export function routes(parts: RouteParts<Buffer>): Route[] {
  const { methods = ['POST'], path } = parts;
  return methods.map((method) => ({ method, path, handle: (request) => handle(request, parts) }));
}

/** The same for requests whose body is a JSON object. */
export function jsonRoutes({ answer, ...parts }: RouteParts<JsonObject>): Route[] {
  return routes({ ...parts, answer: (asked) => answer({ ...asked, body: parseObject(asked.body) }) });
}

async function handle(request: SimulatorRequest, parts: RouteParts<Buffer>): Promise<Reply> {
  const { method, target, body, directives } = request;
  const digest = createHash('sha256')
    .update(body.length === 0 ? target : body)
    .digest('hex');
  const at = target.indexOf('?');
  const query = new URLSearchParams(at < 0 ? '' : target.slice(at));
  const answerFormat = parts.answerFormat?.(digest, query) ?? openaiFormat;
  const header = (name: string): string | undefined => headerOf(request, name);
  const asked: RouteRequest = {
    method,
    path: at < 0 ? target : target.slice(0, at),
    query,
    body,
    digest,
    origin: `http://${header('host') ?? '127.0.0.1'}`,
    answerFormat,
    directives,
    header,
  };
  const reply = await answered(asked, parts);
  const headers = parts.headers?.(digest) ?? { 'x-request-id': `sim-${digest.slice(0, 16)}` };
  return { ...reply, headers: { ...reply.headers, ...headers } };
}

async function answered(asked: RouteRequest, parts: RouteParts<Buffer>): Promise<Reply> {
  try {
    return await parts.answer(asked);
  } catch (error) {
    if (error instanceof RequestError) return refusal(error, asked.answerFormat, asked.directives);
    throw error;
  }
}

/** The answer to a refused request. */
export function refusal(
  error: RequestError,
  answerFormat: AnswerFormat,
  directives: readonly Directive[] = [],
): Reply {
  return bodyReply({ status: error.status, body: answerFormat.errorBody(error), answerFormat, directives });
}

/** A JSON answer of status 200. */
export function jsonReply(
  { answerFormat, directives }: Pick<RouteRequest, 'answerFormat' | 'directives'>,
  body: object,
  wishes: readonly Directive[] = [],
): Reply {
  return bodyReply({
    status: 200,
    body: JSON.stringify(body),
    answerFormat,
    directives: [...directives, ...wishes],
  });
}

function headerOf({ rawHeaders }: SimulatorRequest, name: string): string | undefined {
  const at = rawHeaders.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : rawHeaders[at + 1];
}

/**
 * Parses a JSON object.
 * @param code the vendor's error code for an invalid one
 * @throws RequestError if it is not a JSON object
 */
export function parseObject(bytes: Buffer, code = 'invalid_json', what = 'body'): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    throw new RequestError(400, `The ${what} is not valid JSON.`, null, code);
  }
  if (!isObject(value)) throw new RequestError(400, `The ${what} is not a JSON object.`, null, code);
  return value;
}
