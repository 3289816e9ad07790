/** Codes and reasons of closing frames (RFC 6455 section 7.4). */

/** A control frame holds 125 bytes (RFC 6455 section 5.5), two of which are the code. */
const maxReasonBytes = 123;

const nothing = Buffer.alloc(0);

/**
 * What a close frame holds that says how the other side of a relay ended. 1005 says that its close frame had no code, so ours has none
 * either. 1006 and 1015 say that it had no close frame at all, and the rest is not defined or out of range: the peer is
 * to know that this was no orderly end, which 1011 says. A reason that is too long is cut between two characters.
 */
export function closePayload(code: number, reason: string | Buffer): Buffer {
  if (code === 1005) return nothing;
  const text = cut(typeof reason === 'string' ? Buffer.from(reason) : reason);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(maySend(code) ? code : 1011);
  text.copy(payload, 2);
  return payload;
}

/** Whether a close frame may hold a code (RFC 6455 section 7.4). */
export function maySend(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

function cut(reason: Buffer): Buffer {
  if (reason.length <= maxReasonBytes) return reason;
  let end = maxReasonBytes;
  while (end > 0 && ((reason[end] as number) & 0xc0) === 0x80) end--;
  return reason.subarray(0, end);
}
