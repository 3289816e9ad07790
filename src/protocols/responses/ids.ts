import { createHash } from 'node:crypto';
import { isLegalCallId } from '../../conversation/call-id.js';

const hashLength = 32;

/**
 * The id of a call as this protocol takes it. One that it would refuse is made another by the same rule everywhere,
 * so that a call and its output still meet.
 */
export function legalCallId(id: string): string {
  return isLegalCallId(id) ? id : `call_${hashOf(id)}`;
}

/** Letters, digits, `-` and `_` that stand for a text. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, hashLength);
}
