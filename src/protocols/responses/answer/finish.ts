import type { FinishReason } from '../../../conversation/answer.js';
import { isObject, type JsonObject } from '../../../wire/json.js';
import type { ResponseState } from '../response.js';

/**
 * Returns why an answer ended. Reasons such as `max_messages` and `steered` are of an answer that is not finished.
 * @param response a whole response object, or the one of the last event
 */
export function decodeFinish(response: JsonObject, hasCalls: boolean): FinishReason {
  if (response.status === 'incomplete') {
    const reason = isObject(response.incomplete_details) ? response.incomplete_details.reason : null;
    if (reason === 'max_output_tokens') return 'length';
    if (reason === 'content_filter') return 'filtered';
    return hasCalls ? 'toolCalls' : 'paused';
  }
  return hasCalls ? 'toolCalls' : 'stop';
}

/**
 * Returns the status of an answer that ended for this reason. A paused one is cut: clients take a completed one for
 * finished.
 */
export function encodeFinish(
  reason: FinishReason,
): Pick<ResponseState, 'reason'> & { status: 'completed' | 'incomplete' } {
  if (reason === 'length' || reason === 'paused')
    return { status: 'incomplete', reason: 'max_output_tokens' };
  if (reason === 'filtered') return { status: 'incomplete', reason: 'content_filter' };
  return { status: 'completed' };
}
