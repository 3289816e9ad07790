/** Who caused an error. Decides at which level it is logged. */
type ErrorSource = 'client' | 'gateway' | 'upstream';

interface ErrorEntry {
  readonly status: number;
  readonly source: ErrorSource;
  /** `code` of OpenAI's error bodies. The other error formats derive theirs from the kind. */
  readonly code: string | null;
  /** Message for the caller, unless the error is created with one of its own. */
  readonly message: string;
}

const client = (status: number, code: string | null, message: string): ErrorEntry => ({
  status,
  source: 'client',
  code,
  message,
});
const gateway = (status: number, code: string, message: string): ErrorEntry => ({
  status,
  source: 'gateway',
  code,
  message,
});
const upstream = (status: number, code: string, message: string): ErrorEntry => ({
  status,
  source: 'upstream',
  code,
  message,
});

/** Every kind of error that clients get. `protocols/error-formats/` makes the response bodies from it. */
export const errorTable = {
  invalid_request: client(400, null, 'The request is not valid.'),
  invalid_value: client(400, 'invalid_value', 'A parameter has a value that is not allowed.'),
  missing_parameter: client(400, 'missing_required_parameter', 'A required parameter is missing.'),
  unsupported_parameter: client(400, 'unsupported_parameter', 'A parameter is not supported.'),
  previous_response_not_found: client(
    400,
    'previous_response_not_found',
    'The previous response was not found: send the whole conversation.',
  ),
  thread_unsupported_request: client(
    400,
    'thread_unsupported_request',
    'Threads are not supported for this request: send the whole conversation without one.',
  ),
  invalid_json: client(400, 'invalid_json', 'The request body is not valid JSON.'),
  invalid_request_body: client(400, 'invalid_request_body', 'The request body is for a different endpoint.'),
  invalid_api_key: client(401, 'invalid_api_key', 'The API key is missing or not valid.'),
  permission_denied: client(
    403,
    'insufficient_permissions',
    'This API key does not have permission for this request.',
  ),
  model_not_found: client(
    404,
    'model_not_found',
    'The model does not exist or is not available to this key.',
  ),
  not_found: client(404, 'not_found', 'Not found.'),
  item_not_found: client(404, null, 'An item that the input refers to was not found.'),
  thread_not_found: client(
    404,
    'thread_not_found',
    'The message to continue from was not found: send the whole conversation.',
  ),
  unknown_url: client(404, 'unknown_url', 'Unknown request URL.'),
  method_not_allowed: client(405, 'method_not_allowed', 'This method is not allowed here.'),
  conflict: client(409, 'conflict', 'The request conflicts with the current state of the resource.'),
  request_timeout: client(408, 'request_timeout', 'The request did not arrive in time.'),
  request_too_large: client(413, 'request_too_large', 'The request body is too large.'),
  unsupported_media_type: client(415, 'unsupported_media_type', 'The content type is not supported here.'),
  upgrade_required: client(426, 'upgrade_required', 'This endpoint requires a different protocol.'),
  range_not_satisfiable: client(416, 'range_not_satisfiable', 'The requested range is not satisfiable.'),
  rate_limit_exceeded: client(429, 'rate_limit_exceeded', 'Too many requests.'),
  budget_exceeded: client(429, 'insufficient_quota', 'The budget is exhausted.'),
  internal_error: gateway(500, 'internal_error', 'The gateway encountered an internal error.'),
  not_implemented: gateway(501, 'not_implemented', 'This endpoint is not implemented.'),
  overloaded: gateway(503, 'overloaded', 'The gateway is overloaded: try again shortly.'),
  store_unavailable: gateway(
    503,
    'store_unavailable',
    'The gateway cannot reach its store: try again shortly.',
  ),
  loop_detected: gateway(
    508,
    'loop_detected',
    'The call has passed too many gateways. Probably two of them have each other as an upstream of this model.',
  ),
  upstream_error: upstream(502, 'upstream_error', 'The upstream did not return a valid response.'),
  unsupported_stream_event: upstream(
    502,
    'unsupported_stream_event',
    'The upstream sent a stream event that its protocol does not have.',
  ),
  upstream_timeout: upstream(504, 'upstream_timeout', 'The upstream did not answer in time.'),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorKind = keyof typeof errorTable;

/** Why a request to an upstream failed. */
export type UpstreamFailureReason =
  | 'connect_failed'
  | 'connect_timeout'
  | 'proxy_failed'
  | 'tls_failed'
  | 'queue_full'
  | 'no_room'
  | 'reset'
  | 'first_byte_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  | 'malformed_answer'
  | 'answer_too_large'
  | 'truncated'
  | 'closed';

/**
 * Why an attempt was given up although its connection works. `unusable_answer` and `first_token_timeout` (no event within
 * `firstTokenMs`) are the upstream's fault. `answer_too_large`, `no_room` (no memory left for it) and `gateway_fault` are not.
 */
export type GivenUpBy =
  | 'unusable_answer'
  | 'first_token_timeout'
  | 'answer_too_large'
  | 'no_room'
  | 'gateway_fault';

/** Why an attempt did not produce a complete, usable answer. */
export type AttemptFailure = UpstreamFailureReason | GivenUpBy;

/**
 * What refused a call: a configured limit, or one of the fixed bounds on what a key may hold at a worker (sockets and their
 * memory, messages that wait on a socket, downloads).
 */
export type RefusingLimit =
  | 'requests'
  | 'tokens'
  | 'concurrent'
  | 'budget'
  | 'sockets'
  | 'waiting_messages'
  | 'downloads';

interface ErrorDetails {
  /** Path of the parameter at fault, as in `messages[2].content`. */
  readonly param?: string | null;
  /** Seconds for `retry-after`. */
  readonly retryAfter?: number | null;
  /** Value of the `allow` header (405). */
  readonly allow?: string | null;
  /** Status and code of an upstream's error that is passed on in the caller's format. Its source is the upstream. */
  readonly answered?: { readonly status: number; readonly code: string | null };
  /**
   * Tells clients not to retry on their own: the request may have taken effect, or a retry cannot succeed for a long time.
   */
  readonly unrepeatable?: boolean;
  /** The status with which an upstream refused the gateway's own API key or account. */
  readonly vendorAccountStatus?: 401 | 402 | 403;
  /** The limit that refused the call, for the metrics. */
  readonly limit?: RefusingLimit;
  /** An answer exceeded the gateway's own size limit, which does not count against its upstream. */
  readonly answerTooLarge?: boolean;
  /** An upstream's stream ended before its first event. It is treated as one that broke off. */
  readonly unbegun?: boolean;
  /** For the log; never shown to callers. */
  readonly cause?: unknown;
}

/** Converts a wait to the value of `retry-after`: whole seconds, at least one. */
export function retrySeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Returns the code of an error from Node or the system, such as `ENOENT`, or an empty string. */
export function errorCode(fault: unknown): string {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : '';
}

/** An error with all that is needed to answer its caller and to log it. */
export class GatewayError extends Error {
  readonly kind: ErrorKind;
  readonly status: number;
  readonly source: ErrorSource;
  readonly code: string | null;
  readonly param: string | null;
  readonly retryAfter: number | null;
  readonly allow: string | null;
  readonly unrepeatable: boolean;
  readonly vendorAccountStatus: 401 | 402 | 403 | null;
  readonly answerTooLarge: boolean;
  readonly unbegun: boolean;
  readonly limit: RefusingLimit | null;

  constructor(kind: ErrorKind, message?: string | null, details?: ErrorDetails) {
    const entry = errorTable[kind];
    super(message ?? entry.message, details?.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'GatewayError';
    this.kind = kind;
    const answered = details?.answered;
    this.status = answered?.status ?? entry.status;
    this.source = answered === undefined ? entry.source : 'upstream';
    this.code = answered?.code ?? entry.code;
    this.param = details?.param ?? null;
    this.retryAfter = details?.retryAfter ?? null;
    this.allow = details?.allow ?? null;
    this.unrepeatable = details?.unrepeatable ?? false;
    this.vendorAccountStatus = details?.vendorAccountStatus ?? null;
    this.answerTooLarge = details?.answerTooLarge ?? false;
    this.unbegun = details?.unbegun ?? false;
    this.limit = details?.limit ?? null;
  }
}

/** Makes an error for the caller of what was thrown: anything but a `GatewayError` becomes `internal_error`. */
export function asGatewayError(fault: unknown): GatewayError {
  return fault instanceof GatewayError ? fault : new GatewayError('internal_error', null, { cause: fault });
}

/**
 * Makes the gateway's error for one that an upstream reported, with the status of its kind.
 * @param code the upstream's error code
 */
export function answeredAs(kind: ErrorKind, message: string, code: string | null = null): GatewayError {
  return new GatewayError(kind, message, { answered: { status: errorTable[kind].status, code } });
}

/** Returns the same error, marked as one that clients must not retry on their own. */
export function unrepeatable(error: GatewayError): GatewayError {
  if (error.unrepeatable) return error;
  const { kind, message, status, code, source, cause } = error;
  const answered = source === 'upstream' ? { answered: { status, code } } : {};
  return new GatewayError(kind, message, { ...answered, unrepeatable: true, cause });
}

/** Returns a text as it is shown in messages and logs: at most `most` UTF-16 code units of it, then a mark if there are more. */
export function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Where an unexpected exception was caught. The values are labels of a metric. */
export type FaultPlace =
  /** A callback of a client's request: its head, body or response. */
  | 'request'
  /** A client's WebSocket. */
  | 'socket'
  /** A connection to an upstream, or the download of a file. */
  | 'upstream'
  | 'timer'
  /** A continuation of a promise: of the store, or of a request about a task. */
  | 'promise'
  /** A message between the processes of a host. */
  | 'ipc'
  /** The recording of calls that have ended. */
  | 'report'
  /** The operators' listener. */
  | 'admin'
  /** An exception that nothing caught. */
  | 'process';

/** The owner of callbacks: a call, a session or a connection. */
export interface Guarded {
  /** Called when a callback has thrown. The owner ends, releases what it holds, and has the exception counted and logged. */
  onFault(where: FaultPlace, fault: unknown): void;
}

/**
 * Wraps a callback so that an exception in it ends its owner and nothing else. Every callback that is registered with uWS,
 * Node or another part of the gateway is wrapped.
 * @param otherwise what to return after an exception; omitted where the result is not read
 */
export function guard<Arguments extends unknown[]>(
  where: FaultPlace,
  owner: Guarded,
  callback: (...args: Arguments) => void,
): (...args: Arguments) => void;
export function guard<Arguments extends unknown[], Result>(
  where: FaultPlace,
  owner: Guarded,
  callback: (...args: Arguments) => Result,
  otherwise: NoInfer<Result>,
): (...args: Arguments) => Result;
export function guard<Arguments extends unknown[], Result>(
  where: FaultPlace,
  owner: Guarded,
  callback: (...args: Arguments) => Result,
  otherwise?: Result,
): (...args: Arguments) => Result | undefined {
  // Three arguments, which no callback exceeds: rest parameters and spreading cost several times more.
  const call = callback as unknown as (a: unknown, b: unknown, c: unknown) => Result;
  return ((a: unknown, b: unknown, c: unknown): Result | undefined => {
    try {
      return call(a, b, c);
    } catch (fault) {
      handFault(owner, where, fault);
      return otherwise;
    }
  }) as unknown as (...args: Arguments) => Result;
}

/** Reports an exception to its owner. Never throws: exceptions of `onFault` itself go to the process. */
export function handFault(owner: Guarded, where: FaultPlace, fault: unknown): void {
  try {
    owner.onFault(where, fault);
  } catch (second) {
    surfaceFault(fault);
    surfaceFault(second);
  }
}

/** Throws an exception that has no owner from a microtask, so that the process's handler counts and logs it. */
export function surfaceFault(fault: unknown): void {
  queueMicrotask(() => {
    throw fault;
  });
}
