import type { FaultPlace, Guarded, UpstreamFailureReason } from '../errors.js';
import type { RequestHeadLines } from '../wire/head.js';
import type { Origin } from './origin.js';

export interface UpstreamFailure {
  readonly reason: UpstreamFailureReason;
  /** For the log: the peer, and the message of the system or the parser. Never contains a key or a body. */
  readonly detail: string;
  /** True once any byte of the request was handed to the socket. */
  readonly bytesSent: boolean;
  /** True once `onHead` was called. */
  readonly headSeen: boolean;
  /**
   * Milliseconds since the whole request was first handed to a socket: how long the upstream may have worked on it. 0
   * if a part of the request has not been handed over.
   */
  readonly sentMs: number;
}

/** The head of an upstream's answer. Names are lower-case. */
export interface ResponseHead {
  readonly status: number;
  /** Names and values in turn, in the order of arrival: `[name, value, name, value, …]`. */
  readonly fields: readonly string[];
  /** First value of a field, or null. */
  get(name: string): string | null;
  /** Whether the name of a field may begin with one of these letters: see `ParsedHead.mayHave`. */
  mayHave(initials: number): boolean;
  /** Value of the `content-encoding` field, lower-case, or null; empty when there are several such fields. */
  readonly contentCoding: string | null;
  /** First value of `content-type`, or null. */
  readonly contentType: string | null;
  /** Length of the body if the framing gives it (0 for HEAD, 204 and 304 as well), else -1. */
  readonly contentLength: number;
}

/** One request, ready to be written. */
export interface UpstreamRequest {
  readonly method: string;
  /** Request line and all header lines, without the empty line and without the framing headers. */
  readonly head: RequestHeadLines;
  /**
   * Pieces of the body in order; the client adds `content-length`. Empty for a request without a body. With a source,
   * its bytes follow these pieces.
   */
  readonly body: readonly Buffer[];
  /**
   * Source of the rest of the body, or null if `body` is complete. A request with a source always gets a connection
   * that has not been used before, since it cannot be sent twice.
   */
  readonly source: RequestBodySource | null;
  /**
   * Whether the request creates or stores something at the upstream. Such a request is never resent once any of it has
   * been sent. Evaluated only when needed.
   * @param body the `body` of this request
   */
  readonly hasEffects: (body: readonly Buffer[]) => boolean;
}

/**
 * How long after all of a request was sent a broken connection still allows resending it, to the same upstream or to
 * another, in milliseconds. Since upstreams may close idle connections at any time, such a request is treated as not
 * processed. One that ran for longer may have been carried out.
 */
export const resendableMs = 1000;

/** A request body that is still arriving. Its methods are not called after the end of the exchange. */
export interface RequestBodySource {
  /**
   * Total bytes, including the pieces of `body`, or -1 if unknown: the body is then sent in chunked coding (RFC 9112
   * section 7.1). Read once, when the connection is ready.
   */
  readonly length: number;
  /**
   * Called when the request's head and the pieces of `body` have been handed to the socket. From now on `sink` accepts
   * the rest. Called at most once for a request, never before `send` has returned.
   */
  onOpen(sink: RequestBodySink): void;
  /** Called when writing may continue after `write` has returned false. */
  onDrain(): void;
}

/**
 * Receives a body in parts. The exchange fails (`reset`) for bytes beyond the announced length, for an end before it,
 * and for writes without waiting for `onDrain`, though never before the call returns. After the end of the exchange,
 * calls are no-ops.
 */
export interface RequestBodySink {
  /**
   * Hands the bytes to the system or copies them, so that the chunk may be reused when this returns.
   * @returns false when the connection does not keep up: one more write is accepted, for a chunk that was already on
   *   its way, and none after it until `onDrain`
   */
  write(chunk: Buffer): boolean;
  /**
   * Called when more data waits in the same turn of the event loop. Retries what the system has not accepted yet. May
   * call `onDrain`.
   */
  flush(): void;
  /** Called when the whole body was written. */
  end(): void;
}

export interface Deadlines {
  readonly connectMs: number;
  /** From the moment the whole request, including its body, was handed to the socket, to the head of the answer. */
  readonly firstByteMs: number;
  /**
   * Between two reads of the body, and until the upstream accepts what was written of a body with a source. Does not
   * run while the receiver has paused.
   */
  readonly idleMs: number;
  readonly totalMs: number;
}

/**
 * Receives an answer. Exactly one of `onEnd` and `onFailure` is called, once; after `cancel`, neither is.
 */
export interface UpstreamHandler extends Guarded {
  onHead(head: ResponseHead): void;
  /**
   * Called with a piece of the body, decoded from its transfer coding and, if the upstream compressed it without being
   * asked to, from its content coding. Valid only until the call returns.
   * @returns false to pause: no more data follows until `resume`
   */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
  /**
   * Called when one of these functions, or the code that serves the request, has thrown. The request is cancelled, and
   * no other callback follows.
   */
  onFault(where: FaultPlace, fault: unknown): void;
}

/** The owner's handle of a request in flight. */
export interface UpstreamExchange {
  resume(): void;
  /** Cancels the request immediately: the connection is destroyed, and no callback follows. */
  cancel(): void;
  /**
   * When the request's head was first handed to a socket (performance.now, in milliseconds), or 0 while it waits. The
   * body may still be arriving at that time. `UpstreamFailure.sentMs` tells how long the upstream has had the whole
   * request.
   */
  readonly sentAt: number;
  /**
   * The system has taken the whole request for the connection. Of a request that has ended, whether it had by then. Not told
   * of one that was answered.
   */
  readonly isWritten: boolean;
  /** True once the head of the answer has arrived and the request's buffers will not be read again. */
  readonly bodyReleased: boolean;
}

export interface UpstreamClient {
  send(
    origin: Origin,
    request: UpstreamRequest,
    deadlines: Deadlines,
    handler: UpstreamHandler,
  ): UpstreamExchange;
  /** Counts for status pages and tests. */
  stats(): { readonly open: number; readonly idle: number; readonly busy: number; readonly waiting: number };
  /** Closes idle connections now, and busy ones when their requests end. Later calls of `send` fail. */
  close(): void;
}
