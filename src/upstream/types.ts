import type { FaultPlace, UpstreamFailureReason } from '../errors.js';
import type { RequestHeadLines } from '../wire/head.js';
import type { Origin } from './origin.js';

export interface UpstreamFailure {
  readonly reason: UpstreamFailureReason;
  /** For the log: the peer and the system's or the parser's words. Never a key or a body. */
  readonly detail: string;
  /** True once any byte of the request was handed to the socket. */
  readonly bytesSent: boolean;
  /** True once `onHead` was called. */
  readonly headSeen: boolean;
  /**
   * Milliseconds since the whole request was first handed to a socket: how long the upstream may have been at work on
   * it. 0 while a part of it is still to be handed over.
   */
  readonly sentMs: number;
}

/** The head of an upstream's answer. Names are lower-case. */
export interface ResponseHead {
  readonly status: number;
  /** Names and values in turn, as they came: `[name, value, name, value, …]`. */
  readonly fields: readonly string[];
  /** First value of a field, or null. */
  get(name: string): string | null;
  /** Whether a name may begin with one of these letters: see `ParsedHead.mayHave`. */
  mayHave(initials: number): boolean;
  /** Value of the only `content-encoding` field, lower-case, or null; empty when there are several fields. */
  readonly contentCoding: string | null;
  /** First value of `content-type`, or null. */
  readonly contentType: string | null;
  /** Length of the body where the framing says it (also 0 for HEAD, 204, 304), else -1. */
  readonly contentLength: number;
}

/** One request, ready to be written. */
export interface UpstreamRequest {
  readonly method: string;
  /** Request line and all header lines, without the empty line and without the framing headers. */
  readonly head: RequestHeadLines;
  /**
   * Pieces of the body in order; the client adds `content-length`. Empty for a request without a body. With a source
   * they go first, and its bytes follow.
   */
  readonly body: readonly Buffer[];
  /**
   * Where the rest of the body comes from, or null where `body` is all of it. Such a request always gets a connection
   * of its own that has not been used before, since it cannot be sent twice.
   */
  readonly source: RequestBodySource | null;
  /**
   * Whether it makes or keeps something at the upstream, so that it is never sent again once any of it has left. Asked
   * only when a kept connection has ended without an answer.
   * @param body the pieces above
   */
  readonly hasEffects: (body: readonly Buffer[]) => boolean;
}

/**
 * A request whose connection broke within so long after all of it was sent may be sent again, to the same upstream or to
 * another: it is taken not to have been looked at, since upstreams close kept connections when they like. What ran for
 * longer was at work, and may have been done.
 */
export const resendableMs = 1000;

/** A request body that is still arriving. Nothing is called after the end of its exchange. */
export interface RequestBodySource {
  /**
   * Bytes in all, together with the pieces of `body`, or -1 where that is not known: then it is sent in chunked coding
   * (RFC 9112 section 7.1). It is read once, when the connection is there.
   */
  readonly length: number;
  /**
   * The request's head and the pieces of `body` have been handed to the socket: from now on `sink` takes what follows.
   * Called at most once for a request, never before `send` has returned.
   */
  onOpen(sink: RequestBodySink): void;
  /** After `write` has said false: go on. */
  onDrain(): void;
}

/**
 * Takes a body on its way. Bytes beyond the announced length, an end before it and writing on in spite of `onDrain`
 * not having come fail the exchange (`reset`), though never before the call returns. After the end of the exchange both
 * do nothing.
 */
export interface RequestBodySink {
  /**
   * Hands the bytes to the system or copies them: the chunk may be used again when this returns.
   * @returns false when the connection does not keep up: one more write is taken, for what was on its way, and nothing
   * after it until `onDrain`
   */
  write(chunk: Buffer): boolean;
  /** More waits in the same turn of the event loop: what did not leave at once may leave now, and `onDrain` be called. */
  flush(): void;
  /** All of it was written. */
  end(): void;
}

export interface Deadlines {
  readonly connectMs: number;
  /** From the request handed to the socket, with all of its body, to the head of the answer. */
  readonly firstByteMs: number;
  /**
   * Between two reads of the body, and until the upstream takes on what has been written of a body with a source; does
   * not run while the receiver has paused.
   */
  readonly idleMs: number;
  readonly totalMs: number;
}

/**
 * What hears of an answer. Exactly one of `onEnd` and `onFailure` ends it, once; after `cancel` neither is called.
 */
export interface UpstreamHandler {
  onHead(head: ResponseHead): void;
  /**
   * A piece of the body, decoded from its transfer coding and, if the upstream compressed it unasked, from its
   * content coding. Valid only until the call returns.
   * @returns false to pause: nothing more comes until `resume`.
   */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
  /** One of these functions has thrown, or what serves the request has: it is cancelled, and nothing else follows. */
  onFault?(where: FaultPlace, fault: unknown): void;
}

/** A running request, as its owner sees it. */
export interface UpstreamExchange {
  resume(): void;
  /** Gives the request up at once: the connection is destroyed, and no callback follows. */
  cancel(): void;
  /**
   * When the request's head was first handed to a socket (milliseconds of performance.now), or 0 while it waits. Its body
   * may still be arriving then: for how long the upstream has had all of it is in `UpstreamFailure.sentMs`.
   */
  readonly sentAt: number;
  /** True once the answer's head is there and no part of the request will be read from its buffers again. */
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
  /** Closes idle connections now and busy ones when their request ends; later sends fail. */
  close(): void;
}
