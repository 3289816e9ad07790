/** Codes and reasons of closing frames (RFC 6455 section 7.4). */

/** A control frame holds 125 bytes (RFC 6455 section 5.5), two of which are the code. */
const maxReasonBytes = 123;

export interface Closing {
  /** Undefined for a frame without a code. */
  readonly code: number | undefined;
  readonly reason: Buffer;
}

const nothing = Buffer.alloc(0);

/**
 * What to send for how the other side of a relay ended. 1005 says that its close frame had no code, so ours has none
 * either. 1006 and 1015 say that it had no close frame at all, and the rest is not defined or out of range: the peer is
 * to know that this was no orderly end, which 1011 says. A reason that is too long is cut between two characters.
 */
export function closingOf(code: number, reason: string | Buffer): Closing {
  if (code === 1005) return { code: undefined, reason: nothing };
  const bytes = typeof reason === 'string' ? Buffer.from(reason) : reason;
  return { code: maySend(code) ? code : 1011, reason: cut(bytes) };
}

function maySend(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

function cut(reason: Buffer): Buffer {
  if (reason.length <= maxReasonBytes) return reason;
  let end = maxReasonBytes;
  while (end > 0 && ((reason[end] as number) & 0xc0) === 0x80) end--;
  return reason.subarray(0, end);
}

/** The code that `ws` closes with when it cannot take what came, by the code of its error. */
export function faultCode(error: NodeJS.ErrnoException): number {
  switch (error.code) {
    case 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH':
    case 'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH':
      return 1009;
    case 'WS_ERR_TOO_MANY_BUFFERED_PARTS':
      return 1008;
    default:
      return 1002;
  }
}
