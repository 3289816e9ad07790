import type { FaultPlace, Guarded } from '../errors.js';
import type { Origin } from './origin.js';
import type { ResponseHead, UpstreamFailure } from './types.js';

/** How an open socket broke, or why data of the upstream could not be accepted. */
export type SocketFault = Pick<UpstreamFailure, 'reason' | 'detail'>;

export interface SocketRequest {
  readonly origin: Origin;
  /** Request target: path and query. */
  readonly path: string;
  /**
   * Further headers as pairs of name and value: credentials, `openai-beta`, forwarded headers. Printable ASCII and tabs
   * only. Headers that belong to the handshake itself are ignored.
   */
  readonly headers: readonly (readonly [string, string])[];
  /** Maximum size of a message, in bytes. A larger one closes the socket with 1009. */
  readonly maxMessageBytes: number;
  /** Timeout for TCP and TLS together. */
  readonly connectMs: number;
  /** From the moment the request was handed over to the head of the answer. */
  readonly firstByteMs: number;
  /**
   * Silence (no byte) after which a ping is sent. After as long again without a byte, the socket ends as broken. Each of
   * the two may be late by up to a quarter of `pingMs`, and they do not run while reading is paused.
   */
  readonly pingMs: number;
}

/**
 * Receives the events of a socket. Nothing is called before `openSocket` has returned, nor after `onDeclined`,
 * `onFailed`, `onClosed` or `terminate`.
 */
export interface SocketListener extends Guarded {
  onOpen(): void;
  /**
   * Called when the upstream has answered the upgrade with a different response. `body` is its start, at most 64 KB.
   */
  onDeclined(head: ResponseHead, body: Buffer): void;
  /** Called when there is no answer to the upgrade. */
  onFailed(failure: UpstreamFailure): void;
  /**
   * Called with a whole message; never between `pause` and `resume`, and never after `close`. The bytes are valid until
   * the next `onReadEnd` returns.
   */
  onMessage(data: Buffer, isBinary: boolean): void;
  /** Called when all messages of one read have been delivered. */
  onReadEnd(): void;
  /** Called after `send` has returned false, when little or nothing waits any more. */
  onDrained(): void;
  /**
   * Called with the number of bytes that the socket now holds of undelivered messages: of incomplete messages, and of
   * data that was read when it was paused.
   * @returns false when there is no room for the increase: the socket then closes with 1013, which `onClosed` reports
   */
  hold(bytes: number): boolean;
  /**
   * Called when the open socket has ended. While messages wait for `resume`, this waits as well.
   * @param code the upstream's code; 1005 for a close frame without a code; 1006 if the socket broke without a close
   *   frame; or the code that was sent because data of the upstream could not be accepted (1002, 1007, 1009, 1013)
   * @param fault null if the upstream has sent a close frame
   */
  onClosed(code: number, reason: Buffer, fault: SocketFault | null): void;
  /**
   * Called when one of these functions, or the code that serves the socket, has thrown. The socket is terminated, and
   * no other callback follows.
   */
  onFault(where: FaultPlace, fault: unknown): void;
}

export interface UpstreamSocket {
  /**
   * Sends a message. The bytes are copied before this returns, so that their memory may be reused.
   * @returns false when the connection does not keep up (the message is sent, and `onDrained` follows), or when it is
   *   closing (the message is dropped, and only `onClosed` follows)
   * @throws Error before `onOpen`
   */
  send(data: Uint8Array, isBinary: boolean): boolean;
  /** Number of bytes that were sent and that the system has not accepted yet. */
  readonly waitingBytes: number;
  /** Stops reading from the connection. */
  pause(): void;
  /** Resumes reading. Messages that were in the same read as the pause are delivered before this returns. */
  resume(): void;
  /**
   * Starts the closing handshake. The connection is destroyed if the other side does not answer within a second.
   * `onClosed` still follows. `closePayload` replaces codes that may not be sent. Before `onOpen`, this is the same as
   * `terminate`.
   */
  close(code: number, reason: string | Buffer): void;
  /** Destroys the connection immediately. No callback follows. */
  terminate(): void;
}
