import type { RateFamily, VendorWords } from '../../config/types.js';
import { type ErrorKind, errorTable, type GatewayError } from '../../errors.js';
import { isPolicyCode } from './upstream-error.js';

/** How a vendor writes errors, and what accompanies them in its answers. */
export interface ErrorFormat {
  readonly name: 'openai' | 'anthropic' | 'google' | 'kling' | 'jimeng';
  /** Returns the JSON text of an error body. */
  errorBody(error: GatewayError, requestId: string): string;
  /**
   * Returns the last words of a stream after a failure: complete SSE text that this error format's SDKs raise as an
   * error.
   * @param number of the event in its stream, for protocols that number them
   */
  errorEvent(error: GatewayError, requestId: string, number: number): string;
  /**
   * Tells whether a client raises the error event of a stream, by its `user-agent`, which is empty if absent. A client
   * that does not treats a stream that ends after the event as complete, and notices the failure only if the connection
   * breaks. Null if all clients raise it.
   */
  readonly readsErrorEvents: ((userAgent: string) => boolean) | null;
  /** Complete SSE text to send on a silent stream, which the format's SDKs ignore. */
  readonly keepAlive: string;
  /** Name of a second header with the request id, or null. */
  readonly requestIdHeader: string | null;
  /** The family of headers in which its SDKs read the limits of their key; null for none. */
  readonly rateHeaders: RateFamily | null;
}

/** Makes a format whose error event is its error body. Its caller overrides the other members as needed. */
function plainFormat(name: ErrorFormat['name'], errorBody: ErrorFormat['errorBody']): ErrorFormat {
  return {
    name,
    keepAlive: ': keep-alive\n\n',
    requestIdHeader: null,
    rateHeaders: null,
    readsErrorEvents: null,
    errorBody,
    errorEvent: (error, requestId) => `data: ${errorBody(error, requestId)}\n\n`,
  };
}

/** A format's words for errors: by kind, else by the kind's status in `errorTable`, else by who caused the error. */
interface ErrorWords<Word> {
  readonly kinds: Readonly<Partial<Record<ErrorKind, Word>>>;
  readonly statuses: Readonly<Partial<Record<number, Word>>>;
  /** For any other status below 500. */
  readonly client: Word;
  readonly server: Word;
}

/** @returns the format's word for errors of the kind */
function wordOf<Word>({ kinds, statuses, client, server }: ErrorWords<Word>, kind: ErrorKind): Word {
  const { status } = errorTable[kind];
  return kinds[kind] ?? statuses[status] ?? (status < 500 ? client : server);
}

const openaiTypes: ErrorWords<string> = {
  kinds: { budget_exceeded: 'insufficient_quota', not_implemented: 'invalid_request_error' },
  statuses: { 403: 'permission_error', 429: 'rate_limit_error' },
  client: 'invalid_request_error',
  server: 'server_error',
};

/** Returns the JSON text of the `error` object in bodies of the chat family. */
export function openaiError(error: GatewayError): string {
  // Users of the SDKs read `param` to distinguish a wrong model from a wrong path: both are 404.
  const param = error.param ?? (error.kind === 'model_not_found' ? 'model' : null);
  return `{"message":${JSON.stringify(error.message)},"type":"${wordOf(openaiTypes, error.kind)}","param":${JSON.stringify(param)},"code":${JSON.stringify(error.code)}}`;
}

/** Every OpenAI-shaped endpoint: chat, responses and the rest of `/v1`, and every path of no other format. */
export const openai: ErrorFormat = {
  // The event has no `event:` line, since the 4.x SDK wraps a chunk that has one, and no `[DONE]` after it. The stream
  // ends orderly, since the AI SDK reads on after the event: it would raise a broken connection in place of the error.
  ...plainFormat('openai', (error) => `{"error":${openaiError(error)}}`),
  rateHeaders: 'chat',
};

/**
 * `/v1/rerank` and `/v1/embed`: the body of the chat family, with the message at the top level as well, where Cohere's
 * clients read it.
 */
export const rerank: ErrorFormat = {
  ...openai,
  errorBody: (error) => `{"message":${JSON.stringify(error.message)},"error":${openaiError(error)}}`,
};

/**
 * Returns the error event of a responses stream. Its members stand in the event itself, as the protocol requires, and
 * again under `error`: without that, one version of the SDK treats it as any other event and does not raise it.
 * @param sequence number of the event in its stream
 */
export function responsesErrorEvent(error: GatewayError, sequence: number): string {
  const param = JSON.stringify(error.param);
  return (
    `event: error\ndata: {"type":"error","sequence_number":${sequence},"code":${JSON.stringify(error.code)},` +
    `"message":${JSON.stringify(error.message)},"param":${param},"error":${openaiError(error)}}\n\n`
  );
}

/** The responses endpoints: bodies like all of OpenAI's, and streams with named events. */
export const responses: ErrorFormat = {
  ...openai,
  errorEvent: (error, _requestId, number) => responsesErrorEvent(error, number),
};

/** https://platform.claude.com/docs/en/api/errors */
const anthropicTypes: ErrorWords<string> = {
  kinds: { overloaded: 'overloaded_error' },
  statuses: {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    408: 'timeout_error',
    409: 'conflict_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    504: 'timeout_error',
  },
  client: 'invalid_request_error',
  server: 'api_error',
};

/** Kinds that the SDK's threads recognise by `error.details.error_code`, and handle on their own. */
const detailedKinds: ReadonlySet<ErrorKind> = new Set(['thread_not_found', 'thread_unsupported_request']);

function anthropicBody(error: GatewayError, requestId: string): string {
  const details = detailedKinds.has(error.kind)
    ? `,"details":{"error_code":${JSON.stringify(error.code)}}`
    : '';
  return `{"type":"error","error":{"type":"${wordOf(anthropicTypes, error.kind)}","message":${JSON.stringify(error.message)}${details}},"request_id":${JSON.stringify(requestId)}}`;
}

/** The messages protocol. */
export const anthropic: ErrorFormat = {
  name: 'anthropic',
  keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  requestIdHeader: 'request-id',
  rateHeaders: 'messages',
  readsErrorEvents: null,
  errorBody: anthropicBody,
  // The SDK skips an event without an `event:` line.
  errorEvent: (error, requestId) => `event: error\ndata: ${anthropicBody(error, requestId)}\n\n`,
};

/** Names of google.rpc.Code, which specifies the HTTP status of each. */
const googleStatuses: ErrorWords<string> = {
  kinds: {},
  statuses: {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    408: 'DEADLINE_EXCEEDED',
    409: 'ABORTED',
    429: 'RESOURCE_EXHAUSTED',
    501: 'UNIMPLEMENTED',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  },
  client: 'INVALID_ARGUMENT',
  server: 'INTERNAL',
};

function googleBody(error: GatewayError): string {
  const details =
    error.kind === 'rate_limit_exceeded' && error.retryAfter !== null
      ? `,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"${error.retryAfter}s"}]`
      : '';
  return `{"error":{"code":${error.status},"message":${JSON.stringify(error.message)},"status":"${wordOf(googleStatuses, error.kind)}"${details}}}`;
}

const sdkVersion = /google-genai-sdk\/(\d+)\.(\d+)/;

/**
 * Versions of Google's SDK before 2.32 return an error event as a chunk without text; later ones raise it. The behaviour
 * of other clients of generateContent is unknown.
 */
function readsErrorEvents(userAgent: string): boolean {
  const [, major, minor] = sdkVersion.exec(userAgent) ?? [];
  return Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 32);
}

/** generateContent and everything else under `/v1beta`. */
export const google: ErrorFormat = {
  // The SDK drops a block that does not begin with `data:`.
  ...plainFormat('google', googleBody),
  readsErrorEvents,
};

/** The vendor's own numbers, by which its native clients distinguish errors. */
const klingCodes: ErrorWords<number> = {
  kinds: {
    invalid_value: 1201,
    missing_parameter: 1201,
    previous_response_not_found: 1201,
    unsupported_parameter: 1201,
    range_not_satisfiable: 1201,
    budget_exceeded: 1102,
  },
  statuses: {
    401: 1000,
    403: 1103,
    404: 1203,
    405: 1202,
    429: 1302,
    501: 1202,
    503: 5001,
    504: 5002,
  },
  client: 1200,
  server: 5000,
};

/** The number for content that a vendor's filters refused. */
const klingPolicy = 1301;

function klingCode({ kind, code }: GatewayError): number {
  return isPolicyCode(code) ? klingPolicy : wordOf(klingCodes, kind);
}

function klingBody(error: GatewayError, requestId: string): string {
  return `{"error":${openaiError(error)},"code":${klingCode(error)},"message":${JSON.stringify(error.message)},"request_id":${JSON.stringify(requestId)},"data":null}`;
}

/**
 * The vendork video format. Two kinds of clients read it: those that expect the `error` object of the chat family, and
 * native ones that expect the envelope. No names collide, so a body contains both.
 */
export const kling = plainFormat('kling', klingBody);

/** The number for a text that a vendor's filters refused. */
const jimengPolicy = 50_412;
const serverError = 500;

/**
 * Returns the vendor's number for an error. Its known numbers derive from the HTTP status (50429 rate, 50500 internal),
 * and so do the others here. 50411 to 50413 mean content that its filters refused, so a body that is too large gets the
 * number of an ordinary bad request.
 */
function jimengCode({ kind, code, status }: GatewayError): number {
  if (isPolicyCode(code)) return jimengPolicy;
  if (kind === 'request_too_large') return 50_400;
  return 50_000 + (status === serverError ? status : errorTable[kind].status);
}

function jimengBody(error: GatewayError, requestId: string): string {
  return `{"code":${jimengCode(error)},"message":${JSON.stringify(error.message)},"data":{},"request_id":${JSON.stringify(requestId)}}`;
}

/** The vendorj video format. */
export const jimeng = plainFormat('jimeng', jimengBody);

/**
 * Suffix of the path of an operation on a model. Names of fine-tuned models may have the same form, but operations are
 * only POST.
 */
const modelOperation = /:[A-Za-z][A-Za-z0-9]*$/;

const googleVersions = new Set(['v1beta', 'v1beta1', 'v1alpha']);

/** Base of Gemini's OpenAI-compatible API. */
const compatibleBase = '/v1beta/openai';

/** Prefix of models at the vendor's cloud. */
const cloudPath = /^\/v1\/(?:publishers|projects)\//;

/**
 * Makes the function that returns the error format for a path without a route, or with a method that its route does not
 * have.
 * @param vendors the real words beside the neutral path prefixes
 */
export function createErrorFormatForPath(
  vendors: VendorWords,
): (method: string, path: string) => ErrorFormat {
  const klingWords = new Set(['vendork', ...vendors.vendork]);
  const jimengWords = new Set(['vendorj', ...vendors.vendorj]);
  return (method, path) => {
    if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return anthropic;
    if (method === 'POST' && path.startsWith('/v1/models/') && modelOperation.test(path)) return google;
    const end = path.indexOf('/', 1);
    const word = end === -1 ? path.slice(1) : path.slice(1, end);
    if (path.startsWith(`${compatibleBase}/`)) return openai;
    if (googleVersions.has(word) || cloudPath.test(path)) return google;
    if (klingWords.has(word)) return kling;
    if (jimengWords.has(word)) return jimeng;
    return word === 'anthropic' ? anthropic : openai;
  };
}
