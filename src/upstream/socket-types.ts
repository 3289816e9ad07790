import type { FaultPlace } from '../errors.js';
import type { Origin } from './origin.js';
import type { ResponseHead, UpstreamFailure } from './types.js';

/** How an open socket broke, or why what the upstream sent could not be taken. */
export type SocketFault = Pick<UpstreamFailure, 'reason' | 'detail'>;

export interface SocketRequest {
  readonly origin: Origin;
  /** Request target: path and query. */
  readonly path: string;
  /**
   * Further header lines as names and values in turn: credentials, `openai-beta`, forwarded ones. Printable ASCII
   * and tabs only. Those that the handshake itself is made of are left out.
   */
  readonly headers: readonly (readonly [string, string])[];
  /** Largest message taken, in bytes; a larger one closes with 1009. */
  readonly maxMessageBytes: number;
  /** For TCP and TLS. */
  readonly connectMs: number;
  /** From the request handed over to the answer's head. */
  readonly firstByteMs: number;
  /**
   * Silence (no byte) after which a ping is sent; twice that without anything ends the socket as broken. Both come up
   * to a quarter late, and do not run while reading is paused.
   */
  readonly pingMs: number;
}

/**
 * What hears of a socket. Nothing is called before `openSocket` has returned, nothing after onDeclined, onFailed or
 * onClosed, nothing after terminate().
 */
export interface SocketListener {
  onOpen(): void;
  /** The upstream answered the upgrade with something else. `body` is its beginning, at most 64 KB. */
  onDeclined(head: ResponseHead, body: Buffer): void;
  /** No answer to the upgrade. */
  onFailed(failure: UpstreamFailure): void;
  /**
   * A whole message. None comes between `pause` and `resume`, and none after `close`. The bytes are valid until
   * `onReadEnd` returns, which follows.
   */
  onMessage(data: Buffer, isBinary: boolean): void;
  /** All messages have been told of that one read brought. */
  onReadEnd(): void;
  /** After `send` has said false: little or nothing waits any more. */
  onDrained(): void;
  /**
   * Says what the socket keeps now of messages that it has not told of: those whose end has not come, and what was read
   * when it was paused.
   * @returns false when there is no room for more than before: the socket then closes with 1013, which `onClosed` tells
   */
  hold(bytes: number): boolean;
  /**
   * The open socket has ended. `code` is 1006 when it broke without a close frame, 1005 for a close frame without a
   * code, and the one that was sent when what the upstream sent could not be taken (1002, 1009, 1013). Waits for
   * `resume` where messages do.
   * @param fault null where the upstream has sent a close frame
   */
  onClosed(code: number, reason: Buffer, fault: SocketFault | null): void;
  /** One of these functions has thrown, or what serves the socket has: it is terminated, and nothing else follows. */
  onFault?(where: FaultPlace, fault: unknown): void;
}

export interface UpstreamSocket {
  /**
   * Sends a message; the bytes are copied before it returns (they may be a view of memory that is taken back).
   * @returns false when the connection does not keep up: what was given is sent all the same, and `onDrained` follows;
   * or when it is closing: what was given is dropped, and only `onClosed` follows
   * @throws Error before `onOpen`
   */
  send(data: Uint8Array, isBinary: boolean): boolean;
  /** Bytes that were sent and that the system has not taken. */
  readonly waitingBytes: number;
  /** Stops reading from the connection. */
  pause(): void;
  /** Goes on; messages that were read together with the one at which it was paused come before this returns. */
  resume(): void;
  /**
   * Closing handshake; the connection is destroyed when the other side does not answer it within a second. `onClosed`
   * still comes. For codes that may not be sent, see `closePayload`. Before `onOpen` it does what `terminate` does.
   */
  close(code: number, reason: string | Buffer): void;
  /** Destroys the connection at once; nothing more is called. */
  terminate(): void;
}
