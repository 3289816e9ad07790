import type { FinishReason } from '../../../conversation/answer.js';

const filters: ReadonlySet<unknown> = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'ESCALATION',
  'MODEL_ARMOR',
  'PUP_LIMITED_DISABLED',
]);

/** The second is of an answer that could be gone on with by a `continuationToken`, which no other protocol has. */
const lengths: ReadonlySet<unknown> = new Set(['MAX_TOKENS', 'CONTINUATION']);

/** True for a `finishReason` or `blockReason` that says something: the enumerations begin with a value for none. */
export function isReason(reason: unknown): reason is string {
  return typeof reason === 'string' && reason !== '' && !reason.endsWith('_UNSPECIFIED');
}

/**
 * Reads a `finishReason`. The protocol has none for tool calls, so the calls themselves decide.
 * @param hasCalls whether the candidate has function calls
 */
export function decodeFinish(reason: unknown, hasCalls: boolean): FinishReason {
  if (lengths.has(reason)) return 'length';
  if (filters.has(reason)) return 'filtered';
  if (hasCalls) return 'toolCalls';
  return reason === 'STOP' ? 'stop' : 'other';
}

/** Writes a `finishReason`: one that the protocol has no word for is a natural end. */
export function encodeFinish(reason: FinishReason): string {
  switch (reason) {
    case 'length':
      return 'MAX_TOKENS';
    case 'filtered':
      return 'SAFETY';
    default:
      return 'STOP';
  }
}
