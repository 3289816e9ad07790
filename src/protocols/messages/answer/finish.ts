import type { FinishReason } from '../../../conversation/answer.js';

/** Values of `stop_reason` other than a plain end. Of several with the same meaning, the first is written. */
const words: readonly (readonly [string, FinishReason])[] = [
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['stop_sequence', 'stopSequence'],
  ['refusal', 'filtered'],
  ['pause_turn', 'paused'],
];

/**
 * Reads a `stop_reason`. A plain end after tool calls means that the answer waits for their results.
 * @param hasCalls whether the answer has tool calls
 */
export function decodeFinish(reason: unknown, hasCalls: boolean): FinishReason {
  for (const [word, meaning] of words) if (word === reason) return meaning;
  if (hasCalls) return 'toolCalls';
  return reason === 'end_turn' || reason === 'tool_use' ? 'stop' : 'other';
}

/** Writes a `stop_reason`. */
export function encodeFinish(reason: FinishReason, hasCalls: boolean): string {
  for (const [word, meaning] of words) if (meaning === reason) return word;
  return hasCalls ? 'tool_use' : 'end_turn';
}
