import type { FinishReason } from '../../../conversation/answer.js';
import type { AnswerContext } from '../../../conversation/codec.js';

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

/** Writes a `finish_reason`. A paused turn is a cut one: as a natural end it would be taken for a finished answer. */
export function encodeFinish(
  reason: FinishReason,
  hasCalls: boolean,
  { functionForm }: Pick<AnswerContext, 'functionForm'>,
): string {
  if (reason === 'length' || reason === 'paused') return 'length';
  if (reason === 'filtered') return 'content_filter';
  if (!hasCalls) return 'stop';
  return functionForm ? 'function_call' : 'tool_calls';
}
