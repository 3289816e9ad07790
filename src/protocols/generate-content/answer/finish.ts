import type { FinishReason } from '../../../conversation/answer.js';
import { GatewayError } from '../../../errors.js';
import { type JsonObject, textOf } from '../../../wire/json.js';

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

/**
 * The second value is that of an answer that could be continued by a `continuationToken`, which no other protocol has.
 */
const lengths: ReadonlySet<unknown> = new Set(['MAX_TOKENS', 'CONTINUATION']);

/**
 * The model wrote a call that could not be parsed, or one too many. A conversation cannot continue from such a turn.
 */
const broken: ReadonlySet<unknown> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
  'MALFORMED_RESPONSE',
]);

/**
 * Returns the error for a candidate without text and calls whose finish reason means that the model failed. As an empty
 * turn with a natural end, it would be taken for the end of the work. A retry often succeeds.
 * @returns null for any other reason
 */
export function failedCandidateError({ finishReason, finishMessage }: JsonObject): GatewayError | null {
  if (!broken.has(finishReason)) return null;
  const said = textOf(finishMessage).slice(0, longestMessage);
  return new GatewayError(
    'upstream_error',
    `The model's turn has failed (${String(finishReason)})${said === '' ? '.' : `: ${said}`}`,
  );
}

const longestMessage = 500;

/** Tells whether a `finishReason` or `blockReason` is specified: the enumerations begin with an unspecified value. */
export function isReason(reason: unknown): reason is string {
  return typeof reason === 'string' && reason !== '' && !reason.endsWith('_UNSPECIFIED');
}

/**
 * Reads a `finishReason`. The protocol has none for tool calls, so the calls decide.
 * @param hasCalls whether the candidate has function calls
 */
export function decodeFinish(reason: unknown, hasCalls: boolean): FinishReason {
  if (lengths.has(reason)) return 'length';
  if (filters.has(reason)) return 'filtered';
  if (hasCalls) return 'toolCalls';
  return reason === 'STOP' ? 'stop' : 'other';
}

/**
 * Writes a `finishReason`. One without an equivalent in the protocol is written as a natural end, except that of a
 * paused turn: it would be taken for a finished answer.
 */
export function encodeFinish(reason: FinishReason): string {
  switch (reason) {
    case 'length':
    case 'paused':
      return 'MAX_TOKENS';
    case 'filtered':
      return 'SAFETY';
    default:
      return 'STOP';
  }
}
