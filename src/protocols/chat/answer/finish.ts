import type { FinishReason } from '../../../conversation/answer.js';

/**
 * Reads a `finish_reason`. Upstreams differ in it when tools are called, so the calls decide.
 * @param hasCalls whether the answer has tool calls
 */
export function decodeFinish(reason: unknown, hasCalls: boolean): FinishReason {
  if (reason === 'length') return 'length';
  if (reason === 'content_filter') return 'filtered';
  if (hasCalls) return 'toolCalls';
  return reason === 'stop' || reason === 'tool_calls' || reason === 'function_call' ? 'stop' : 'other';
}

/** Writes a `finish_reason`. */
export function encodeFinish(reason: FinishReason, hasCalls: boolean): string {
  if (reason === 'length') return 'length';
  if (reason === 'filtered') return 'content_filter';
  return hasCalls ? 'tool_calls' : 'stop';
}
