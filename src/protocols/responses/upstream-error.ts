import { isServersOwn } from '../../conversation/event-protocol.js';
import type { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';
import { toldAs, wordsOf } from '../error-formats/upstream-error.js';
import { vendorAccountErrorIn } from '../error-formats/vendor-account.js';

/**
 * The failure that an `error` or `response.failed` event tells of, or an answer in their place.
 * @param event its parsed data, of any shape
 */
export function upstreamError(event: JsonObject): GatewayError {
  const response = isObject(event.response) ? event.response : event;
  const error = isObject(response.error) ? response.error : response;
  const ofVendorAccount = vendorAccountErrorIn(error) ?? vendorAccountErrorIn(response.error);
  if (ofVendorAccount !== null) return ofVendorAccount;
  return toldAs(error, wordsOf(textOrNull(error.message) ?? response.error));
}

/** What an event of a stream is: one of the protocol, one that says nothing of the answer, a failure, or another protocol's. */
type EventStanding = 'known' | 'silence' | 'failure' | 'foreign';

/**
 * @param type its `type`, or its name where it has none
 * @param body its parsed data
 */
export function standingOf(type: string | null, body: JsonObject): EventStanding {
  if (type === 'error' || type === 'response.failed') return 'failure';
  if (type?.startsWith('response.')) return 'known';
  // Servers in between say it without a type.
  if (isObject(body.error) || textOrNull(body.error)) return 'failure';
  return isServersOwn(type, body) ? 'silence' : 'foreign';
}
