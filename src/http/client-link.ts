import type { Guarded } from '../errors.js';

/** Receives the events of a request's client. The answering side implements it. Its exceptions go to `onFault`. */
export interface LinkOwner extends Guarded {
  /** Called when the client has read some of what waited, but not all. */
  onProgress(): void;
  /** Called when the client is too slow for an earlier `write`, as if that had returned false. */
  onBlocked(): void;
  /**
   * Called when the client has read what waited, after `write` or `respond` has returned false, or after `onBlocked`.
   */
  onDrained(): void;
  /**
   * Called when the response has ended, or its last part is about to be written. Nothing may be sent any more, and
   * nothing else is called.
   * @param isDrained whether the client has read what waited, after the last byte was written earlier
   */
  onEnded(isDrained: boolean): void;
  /** Called instead of `onEnded` when the client has disconnected, or its connection has broken. */
  onGone(): void;
}

/** What precedes the body of a response. */
export interface AnswerHead {
  readonly status: number;
  /**
   * The value of `x-request-id`, followed by complete header lines, each preceded by CRLF. uWS gets them as one value,
   * so that one call into C++ writes all of them.
   */
  readonly lines: string;
  /** Whether the connection is closed after the response. */
  readonly closes: boolean;
}

/** Receives a request body. Its exceptions go to the link's owner. */
export interface ChunkReceiver {
  /** @param chunk valid only until this returns */
  onChunk(chunk: ArrayBuffer, isLast: boolean): void;
  /** Called instead of `onChunk` when clients send too many pieces of a few bytes. May be called again. */
  onShredded(): void;
}

/** The source of one request's body. */
export interface BodySource {
  /** Must be called, if at all, before the handler of the request returns. */
  read(receiver: ChunkReceiver): void;
  /** Pauses the client's socket, which then reports nothing, not even that the client has disconnected. */
  pause(): void;
  /** Resumes the socket, and restarts the time within which the client has to make progress. */
  rearm(): void;
}

/**
 * The client's side of one request: the source of its body, and the destination of the response. Takes ownership of the
 * response's bytes in any case. What waits for a slow client stays bounded as long as nothing is written after `write`
 * has returned false. Nothing may be called after the owner was notified of the end.
 */
export interface ClientLink extends BodySource {
  /** To be called once, before anything else. */
  attach(owner: LinkOwner): void;
  /**
   * Sends a whole response.
   * @returns false if the client does not take all of it immediately, so that it has not ended
   */
  respond(head: AnswerHead, body: string | Buffer): boolean;
  /** Sends a response without a body. @param contentLength length to announce, or null for none */
  respondEmpty(head: AnswerHead, contentLength: number | null): void;
  /**
   * Begins a streamed response. Its head is sent with the first bytes.
   * @param contentLength length of a response that ends with its last byte, or -1 for one that ends with `end`
   */
  begin(head: AnswerHead, contentLength: number): void;
  /** Sends a piece that is not empty. @returns false if the client is too slow */
  write(chunk: Buffer): boolean;
  /** Ends a streamed response once the client has read what waits. */
  end(): void;
  /**
   * Ends an incomplete streamed response of unknown length so that no client mistakes it for a complete one: closes the
   * connection when the client's socket has everything that was written.
   * @returns false if that happens later
   */
  endTruncated(): boolean;
  /** Closes the connection, when the response cannot be completed. */
  abort(): void;
}
