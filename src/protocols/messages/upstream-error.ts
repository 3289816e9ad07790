import { isServersOwn, protocolOfEvent } from '../../conversation/event-protocol.js';
import type { ErrorKind, GatewayError } from '../../errors.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { nameOfType } from '../../wire/reading.js';
import { foreignEvent, upstreamErrorOf } from '../error-formats/upstream-error.js';

/**
 * What the protocol's own types of errors are here; any other is the upstream's failure. Those about the gateway's key,
 * account or rights are told apart before (`vendorAccountErrorIn`): a `permission_error` that is left is about what was
 * asked.
 */
const kinds: ReadonlyMap<unknown, ErrorKind> = new Map<unknown, ErrorKind>([
  ['invalid_request_error', 'invalid_request'],
  ['permission_error', 'permission_denied'],
  ['not_found_error', 'not_found'],
  ['conflict_error', 'conflict'],
  ['request_too_large', 'request_too_large'],
  ['rate_limit_error', 'rate_limit_exceeded'],
  ['timeout_error', 'upstream_timeout'],
  ['overloaded_error', 'overloaded'],
]);

/**
 * The failure that an `error` event, or an answer in its place, tells of.
 * @param body its parsed data, of any shape
 */
export function upstreamError(body: JsonObject): GatewayError {
  const error = isObject(body.error) ? body.error : body;
  return upstreamErrorOf(error, kinds.get(error.type));
}

/** Whether an event is neither one of the protocol nor one of a server's own. */
export function isForeign(type: string | null, body: JsonObject): boolean {
  return !isServersOwn(type, body) && protocolOfEvent(type, body) !== 'messages';
}

/** The failure of a stream with such an event. */
export function foreignEventOf(type: string | null, body: JsonObject): GatewayError {
  const [key] = Object.keys(body);
  const untyped = key === undefined ? undefined : `an event with '${nameOfType(key)}' and without a type`;
  return foreignEvent('messages', type, untyped);
}
