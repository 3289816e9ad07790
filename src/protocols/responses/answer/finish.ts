import type { FinishReason } from '../../../conversation/answer.js';
import { isObject, type JsonObject } from '../../../wire/json.js';
import type { ResponseState } from '../response.js';

/**
 * Returns why an answer ended.
 * @param response a whole response object, or the one of the last event
 */
export function decodeFinish(response: JsonObject, hasCalls: boolean): FinishReason {
  if (response.status === 'incomplete') {
    const reason = isObject(response.incomplete_details) ? response.incomplete_details.reason : null;
    if (reason === 'max_output_tokens') return 'length';
    return reason === 'content_filter' ? 'filtered' : 'other';
  }
  return hasCalls ? 'toolCalls' : 'stop';
}

/** Returns the status of an answer that ended for this reason. */
export function encodeFinish(
  reason: FinishReason,
): Pick<ResponseState, 'reason'> & { status: 'completed' | 'incomplete' } {
  if (reason === 'length') return { status: 'incomplete', reason: 'max_output_tokens' };
  if (reason === 'filtered') return { status: 'incomplete', reason: 'content_filter' };
  return { status: 'completed' };
}
