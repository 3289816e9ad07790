import { isLegalCallId } from '../../conversation/call-id.js';
import { hashOf } from '../openai-shared/hashed-id.js';

/**
 * The id of a call as this protocol takes it. One that it would refuse is made another by the same rule everywhere,
 * so that a call and its output still meet.
 */
export function legalCallId(id: string): string {
  return isLegalCallId(id) ? id : `call_${hashOf(id)}`;
}
