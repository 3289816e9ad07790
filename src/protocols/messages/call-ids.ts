import { createHash } from 'node:crypto';
import { legalCarryingId } from '../../conversation/carrying-id.js';
import type { AnswerContext } from '../../conversation/codec.js';
import { isLegalCallId } from '../../conversation/tool-calls.js';

const mapped = 'gwid_';
/** Longest id, in bytes, that is still short enough once it is mapped. */
const mostMapped = 44;

/**
 * Returns the id of a call in this protocol: the id itself if it is legal, else one that is always derived from it in
 * the same way. `originalCallId` reverses this. A very long id is replaced by its digest.
 */
export function legalCallId(id: string): string {
  if (isLegalCallId(id)) return id;
  if (Buffer.byteLength(id) <= mostMapped) return mapped + Buffer.from(id).toString('base64url');
  return `gwh_${createHash('sha256').update(id).digest('base64url')}`;
}

/** Returns the id that `legalCallId` was given, if it can be determined. */
export function originalCallId(id: string): string {
  if (!id.startsWith(mapped)) return id;
  const original = Buffer.from(id.slice(mapped.length), 'base64url').toString();
  return legalCallId(original) === id ? original : id;
}

/**
 * Returns the id of a call in an answer to a client.
 * @param id the upstream's own, with the tokens that it carries; empty if the upstream gave none
 * @param call number of the call in the answer
 */
export function toolUseId(id: string, context: AnswerContext, call: number): string {
  return id === '' ? `toolu_${context.id}_${call}` : legalCarryingId(id, legalCallId);
}
