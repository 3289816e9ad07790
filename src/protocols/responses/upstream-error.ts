import { isServersOwn } from '../../conversation/event-protocol.js';
import type { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';
import { errorByCode, errorMessageOf } from '../error-formats/upstream-error.js';
import { vendorAccountErrorIn } from '../error-formats/vendor-account.js';

/**
 * Returns the failure that an `error` or `response.failed` event, or an answer in their place, reports.
 * @param event its parsed data, of any shape
 */
export function upstreamError(event: JsonObject): GatewayError {
  const response = isObject(event.response) ? event.response : event;
  const error = isObject(response.error) ? response.error : response;
  const ofVendorAccount = vendorAccountErrorIn(error) ?? vendorAccountErrorIn(response.error);
  if (ofVendorAccount !== null) return ofVendorAccount;
  return errorByCode(error, errorMessageOf(textOrNull(error.message) ?? response.error));
}

/**
 * What an event of a stream is: one of the protocol, one without information about the answer, a failure, or one of
 * another protocol.
 */
type EventStanding = 'known' | 'silence' | 'failure' | 'foreign';

/**
 * @param type the event's `type`, or its name if it has none
 * @param body its parsed data
 */
export function classifyEvent(type: string | null, body: JsonObject): EventStanding {
  if (type === 'error' || type === 'response.failed') return 'failure';
  if (type?.startsWith('response.')) return 'known';
  // Proxies send an error without a type.
  if (isObject(body.error) || textOrNull(body.error)) return 'failure';
  return isServersOwn(type, body) ? 'silence' : 'foreign';
}
