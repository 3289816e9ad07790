import { createHash } from 'node:crypto';
import { isLegalCallId } from '../../conversation/call-id.js';
import { legalCarryingId } from '../../conversation/carrying-id.js';
import type { AnswerContext } from '../../conversation/codec.js';

const mapped = 'gwid_';
/** Bytes of an id that still fit when they are mapped. */
const mostMapped = 44;

/**
 * The id of a call in this protocol: the id itself where it is legal, else one made of it, always the same, from which
 * `originalCallId` gets it back. Very long ones have only their digest.
 */
export function legalCallId(id: string): string {
  if (isLegalCallId(id)) return id;
  if (Buffer.byteLength(id) <= mostMapped) return mapped + Buffer.from(id).toString('base64url');
  return `gwh_${createHash('sha256').update(id).digest('base64url')}`;
}

/** The id that `legalCallId` was given, where it can be told. */
export function originalCallId(id: string): string {
  if (!id.startsWith(mapped)) return id;
  const original = Buffer.from(id.slice(mapped.length), 'base64url').toString();
  return legalCallId(original) === id ? original : id;
}

/**
 * The id of a call in an answer to a client.
 * @param id the upstream's own with the tokens that it is to carry, empty where it gave none
 * @param call number of the call in the answer
 */
export function toolUseId(id: string, context: AnswerContext, call: number): string {
  return id === '' ? `toolu_${context.id}_${call}` : legalCarryingId(id, legalCallId);
}
