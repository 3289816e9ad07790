import type { FinishReason } from '../../../conversation/answer.js';

/**
 * Reads a `stop_reason`. A plain end after tool calls is one that waits for their results.
 * @param hasCalls whether the answer has tool calls
 */
export function decodeFinish(reason: unknown, hasCalls: boolean): FinishReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length';
    case 'stop_sequence':
      return 'stopSequence';
    case 'refusal':
      return 'filtered';
    case 'pause_turn':
      return 'paused';
    default:
      if (hasCalls) return 'toolCalls';
      return reason === 'end_turn' || reason === 'tool_use' ? 'stop' : 'other';
  }
}

/** Writes a `stop_reason`. */
export function encodeFinish(reason: FinishReason, hasCalls: boolean): string {
  switch (reason) {
    case 'length':
      return 'max_tokens';
    case 'stopSequence':
      return 'stop_sequence';
    case 'filtered':
      return 'refusal';
    case 'paused':
      return 'pause_turn';
    default:
      return hasCalls ? 'tool_use' : 'end_turn';
  }
}
