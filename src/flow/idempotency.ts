import { createHash } from 'node:crypto';
import type { Call } from './call.js';

/**
 * What a request is known by that its client may send again: its idempotency key bound to the client's own key, so that
 * two clients who choose the same words never meet, neither here nor at an upstream whose account they share.
 * @returns null for a request without one
 */
export function idempotencyMark({ exchange, key }: Call): string | null {
  const { idempotencyKey } = exchange.head;
  if (idempotencyKey === '') return null;
  return createHash('sha256').update(`${key?.id}\n${idempotencyKey}`).digest('hex');
}

/** The header line for an upstream, with CRLF behind it, or an empty string. */
export function idempotencyLine(call: Call): string {
  if (call.exchange.head.idempotencyKey === '') return '';
  return `idempotency-key: ${idempotencyMark(call)}\r\n`;
}
