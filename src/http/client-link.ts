import type { Guarded } from '../errors.js';

/** Who answers a request: what it hears of the client. Of faults of what is called here it hears by `onFault`. */
export interface LinkOwner extends Guarded {
  /** The client has taken some of what waited, but not all of it. */
  onProgress(): void;
  /** The client does not keep up with what `write` has taken before: as if it had said false. */
  onBlocked(): void;
  /** After `write` or `respond` has said false, or `onBlocked`: the client has taken what waited. */
  onDrained(): void;
  /**
   * The answer is over, or its last part is about to be written: nothing may be sent any more, and nothing else is
   * called.
   * @param isDrained the client has taken what waited of an answer whose last byte was given before
   */
  onEnded(isDrained: boolean): void;
  /** In place of `onEnded`: the client left, or its connection broke. */
  onGone(): void;
}

/** What precedes the body of an answer. */
export interface AnswerHead {
  readonly status: number;
  /**
   * The value of `x-request-id`, and behind it complete header lines, each preceded by CRLF: for uWS one value, and so
   * one crossing into C++ for all of them.
   */
  readonly lines: string;
  /** The connection does not go on after the answer. */
  readonly closes: boolean;
}

/** Who takes a request body. Its faults are those of the link's owner. */
export interface ChunkReceiver {
  /** @param chunk valid only until this returns */
  onChunk(chunk: ArrayBuffer, isLast: boolean): void;
  /** In place of it: clients send too many pieces of a few bytes for this one to be taken. May be called again. */
  onShredded(): void;
}

/** Where the body of one request comes from. */
export interface BodySource {
  /** Must be called, if at all, before the handler of the request returns. */
  read(receiver: ChunkReceiver): void;
  /** Stops the client's socket, of which nothing is heard then, not even that the client has left. */
  pause(): void;
  /** Reads on, and restarts the time within which the client has to move. */
  rearm(): void;
}

/**
 * The client's side of one request: where its body comes from, and where the answer goes. Bytes of the answer that are
 * given to it are taken over in any case, and what waits for a client that does not keep up stays bounded as long as
 * nothing is written after a false. Nothing may be called once the owner has heard of an end.
 */
export interface ClientLink extends BodySource {
  /** To be called once, before all else. */
  attach(owner: LinkOwner): void;
  /** Sends a whole answer. @returns false when the client does not take all of it at once: it has not ended yet */
  respond(head: AnswerHead, body: string | Buffer): boolean;
  /** Sends an answer without a body. @param contentLength to be named in it, or null */
  respondEmpty(head: AnswerHead, contentLength: number | null): void;
  /**
   * Begins a streamed answer, whose head leaves with its first bytes.
   * @param contentLength of the answer, which has ended with its last byte, or -1 for one that ends with `end`
   */
  begin(head: AnswerHead, contentLength: number): void;
  /** Sends a piece, which is not empty. @returns false when the client does not keep up */
  write(chunk: Buffer): boolean;
  /** Ends a streamed answer, once the client has taken what waits. */
  end(): void;
  /**
   * Ends a streamed answer of unknown length that is not whole, in a way that nobody takes for its end: its connection
   * breaks once the client's socket has all that was written.
   * @returns false when that is later
   */
  endTruncated(): boolean;
  /** Cuts an answer that cannot be made whole, and with it the connection. */
  abort(): void;
}
