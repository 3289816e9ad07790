/** Who is at fault: it decides what is logged loudly. */
type ErrorSource = 'client' | 'gateway' | 'upstream';

interface ErrorEntry {
  readonly status: number;
  readonly source: ErrorSource;
  /** The `code` string of chat-family error bodies; the other error formats map from the kind. */
  readonly code: string | null;
  /** What the caller reads when the thrower gives no message of its own. */
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

/** Every way in which a call can fail, in one table. The bodies are made from it in `protocols/error-formats/`. */
export const errorTable = {
  invalid_request: client(400, null, 'The request is not valid.'),
  invalid_value: client(400, 'invalid_value', 'A parameter has a value that is not allowed.'),
  missing_parameter: client(400, 'missing_required_parameter', 'A required parameter is missing.'),
  unsupported_parameter: client(400, 'unsupported_parameter', 'A parameter is not supported here.'),
  previous_response_not_found: client(
    400,
    'previous_response_not_found',
    'The response to go on from is not known here: send the whole conversation.',
  ),
  thread_unsupported_request: client(
    400,
    'thread_unsupported_request',
    'No thread is kept for this request: send the whole conversation without one.',
  ),
  invalid_json: client(400, 'invalid_json', 'The request body is not valid JSON.'),
  invalid_request_body: client(400, 'invalid_request_body', 'The body belongs to another endpoint.'),
  invalid_api_key: client(401, 'invalid_api_key', 'The API key is missing or not valid.'),
  permission_denied: client(403, 'insufficient_permissions', 'This key may not do that.'),
  model_not_found: client(
    404,
    'model_not_found',
    'The model does not exist or is not available to this key.',
  ),
  not_found: client(404, 'not_found', 'There is nothing here.'),
  item_not_found: client(404, null, 'An item that the input refers to is not known here.'),
  thread_not_found: client(
    404,
    'thread_not_found',
    'The message to go on from is not known here: send the whole conversation.',
  ),
  unknown_url: client(404, 'unknown_url', 'Unknown request URL.'),
  method_not_allowed: client(405, 'method_not_allowed', 'This method is not allowed here.'),
  conflict: client(409, 'conflict', 'The request is in conflict with the state of its object.'),
  request_timeout: client(408, 'request_timeout', 'The request did not arrive in time.'),
  request_too_large: client(413, 'request_too_large', 'The request body is too large.'),
  unsupported_media_type: client(415, 'unsupported_media_type', 'The content type is not supported here.'),
  upgrade_required: client(426, 'upgrade_required', 'This endpoint is not served in this form.'),
  range_not_satisfiable: client(
    416,
    'range_not_satisfiable',
    'There is nothing in the range that was asked for.',
  ),
  rate_limit_exceeded: client(429, 'rate_limit_exceeded', 'Too many requests.'),
  budget_exceeded: client(429, 'insufficient_quota', 'The budget is used up.'),
  client_closed: client(499, 'client_closed', 'The client closed the connection.'),
  internal_error: gateway(500, 'internal_error', 'The gateway had an internal error.'),
  not_implemented: gateway(501, 'not_implemented', 'This endpoint is not implemented.'),
  overloaded: gateway(503, 'overloaded', 'The gateway is overloaded, try again shortly.'),
  store_unavailable: gateway(
    503,
    'store_unavailable',
    'The store of the gateway cannot be reached, try again shortly.',
  ),
  upstream_error: upstream(502, 'upstream_error', 'The upstream did not give a valid answer.'),
  unsupported_stream_event: upstream(
    502,
    'unsupported_stream_event',
    'The upstream sent a stream that is not of the protocol in use.',
  ),
  upstream_timeout: upstream(504, 'upstream_timeout', 'The upstream did not answer in time.'),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorKind = keyof typeof errorTable;

/** How an upstream can fail a request. */
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
 * Why an attempt is given up whose connection has not failed. An answer of no use (`unusable_answer`), or one of which no
 * event has come in its time (`first_token_timeout`), is the upstream's own doing; more than the gateway takes
 * (`answer_too_large`), no memory for it (`no_room`) and a fault of the gateway's own are not.
 */
export type GivenUpBy =
  | 'unusable_answer'
  | 'first_token_timeout'
  | 'answer_too_large'
  | 'no_room'
  | 'gateway_fault';

/** How an attempt came to no answer, or to no whole or usable one. */
export type AttemptFailure = UpstreamFailureReason | GivenUpBy;

/**
 * What refuses calls of a key that asks for too much: a configured limit, or what it may hold at a worker whatever its
 * limits (sockets and their memory, messages that wait on one, downloads).
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
  /** Path of the parameter at fault, as a caller writes it: `messages[2].content`. */
  readonly param?: string | null;
  /** Seconds for `retry-after`. */
  readonly retryAfter?: number | null;
  /** Value of the `allow` header (405). */
  readonly allow?: string | null;
  /** An upstream's own error that is told in the caller's format: its status and code. The upstream is its source. */
  readonly answered?: { readonly status: number; readonly code: string | null };
  /**
   * Clients are told not to try again by themselves: what was asked for may have been done all the same, or another try
   * cannot succeed for long.
   */
  readonly unrepeatable?: boolean;
  /** The upstream does not accept the gateway's own key or account: the status that says so. */
  readonly vendorAccountStatus?: 401 | 402 | 403;
  /** The limit that refuses the call, for the metrics. */
  readonly limit?: RefusingLimit;
  /** It is more than the gateway takes, which says nothing against whoever sent it. */
  readonly tooLarge?: boolean;
  /** An upstream's stream came to its end before its first event, as one that breaks off does. */
  readonly unbegun?: boolean;
  /** Hidden from callers, shown in the log. */
  readonly cause?: unknown;
}

/** What `retry-after` may say of a wait: whole seconds, and one at least. */
export function retrySeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** The code of an error of Node or the system (`ENOENT`), or an empty string. */
export function errorCode(fault: unknown): string {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : '';
}

/**
 * An error as data: what happened, and what its caller may know of it.
 */
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
  readonly tooLarge: boolean;
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
    this.tooLarge = details?.tooLarge ?? false;
    this.unbegun = details?.unbegun ?? false;
    this.limit = details?.limit ?? null;
  }
}

/** @returns what was thrown, as an error that a caller may see: what is none of ours becomes an `internal_error` */
export function asGatewayError(fault: unknown): GatewayError {
  return fault instanceof GatewayError ? fault : new GatewayError('internal_error', null, { cause: fault });
}

/**
 * An error that an upstream has told, as the one of ours that it means: with the status of that.
 * @param code the upstream's
 */
export function answeredAs(kind: ErrorKind, message: string, code: string | null = null): GatewayError {
  return new GatewayError(kind, message, { answered: { status: errorTable[kind].status, code } });
}

/** The same error of a request whose work may have been done all the same. */
export function unrepeatable(error: GatewayError): GatewayError {
  if (error.unrepeatable) return error;
  const { kind, message, status, code, source, cause } = error;
  const answered = source === 'upstream' ? { answered: { status, code } } : {};
  return new GatewayError(kind, message, { ...answered, unrepeatable: true, cause });
}

/** Where a fault was caught: the label of a metric, so a few words and no others. */
export type FaultPlace =
  /** A client's request: its head, its body, its answer. */
  | 'request'
  /** A client's WebSocket. */
  | 'socket'
  /** A connection to an upstream, and the fetching of a file. */
  | 'upstream'
  | 'timer'
  /** What waited for a promise: of the store, or of an upstream that is asked for a task. */
  | 'promise'
  /** A message between the processes of a host. */
  | 'ipc'
  /** The noting of calls that have ended. */
  | 'report'
  /** The operators' listener. */
  | 'admin'
  /** What nobody caught. */
  | 'process';

/** What callbacks belong to: a call, a session, a connection. */
export interface Guarded {
  /** One of its callbacks has thrown: it ends, alone, gives back what it holds, and has the fault counted and logged. */
  onFault(where: FaultPlace, fault: unknown): void;
}

/**
 * Makes a callback whose faults end what it belongs to, and nothing else. Every callback that is registered with uWS,
 * Node or another part goes through this, so that none has to look out for itself.
 * @param otherwise what is returned in place of what the callback would have; left out where nobody reads that
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
  // A fixed number of arguments, which no callback here exceeds: gathering and spreading them costs several times more.
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

/**
 * The same for a callback that many share.
 * @param ownerOf finds by the first argument whose it is
 */
export function guardEach<First, Rest extends unknown[]>(
  where: FaultPlace,
  ownerOf: (first: First) => Guarded,
  callback: (first: First, ...rest: Rest) => void,
): (first: First, ...rest: Rest) => void {
  return (first, ...rest) => {
    try {
      callback(first, ...rest);
    } catch (fault) {
      handFault(ownerOf(first), where, fault);
    }
  };
}

/** Tells an owner of a fault. Never throws: what the owner throws at that has no owner. */
export function handFault(owner: Guarded, where: FaultPlace, fault: unknown): void {
  try {
    owner.onFault(where, fault);
  } catch (second) {
    surfaceFault(fault);
    surfaceFault(second);
  }
}

/** Hands a fault that has no owner to the process, which counts and logs it, once the running callback has ended. */
export function surfaceFault(fault: unknown): void {
  queueMicrotask(() => {
    throw fault;
  });
}
