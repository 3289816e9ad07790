import { createHash } from 'node:crypto';
import { type HeadLines, headerLinesOf, noLines } from '../wire/head-lines.js';
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

const keyLine = headerLinesOf('idempotency-key');

/** The header line for an upstream, or none. */
export function idempotencyLine(call: Call): HeadLines {
  const mark = idempotencyMark(call);
  return mark === null ? noLines : keyLine(mark);
}
