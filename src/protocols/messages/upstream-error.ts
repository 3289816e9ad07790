import { isServersOwn, protocolOfEvent } from '../../conversation/event-protocol.js';
import type { ErrorKind, GatewayError } from '../../errors.js';
import { isObject, type JsonObject, nameOfType } from '../../wire/json.js';
import { foreignEvent, upstreamErrorOf } from '../error-formats/upstream-error.js';

/**
 * The error kinds of the protocol's own error types. Any other type is a failure of the upstream.
 * `vendorAccountErrorIn` has already handled errors about the gateway's key, account or rights: a remaining
 * `permission_error` is about the request.
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
 * Returns the failure that an `error` event, or an answer in its place, reports.
 * @param body its parsed data, of any shape
 */
export function upstreamError(body: JsonObject): GatewayError {
  const error = isObject(body.error) ? body.error : body;
  return upstreamErrorOf(error, kinds.get(error.type));
}

/** Tells whether an event belongs neither to the protocol nor to extensions of a server. */
export function isForeign(type: string | null, body: JsonObject): boolean {
  return !isServersOwn(type, body) && protocolOfEvent(type, body) !== 'messages';
}

/** Returns the failure of a stream with such an event. */
export function foreignEventOf(type: string | null, body: JsonObject): GatewayError {
  const [key] = Object.keys(body);
  const untyped = key === undefined ? undefined : `an event with '${nameOfType(key)}' and without a type`;
  return foreignEvent('messages', type, untyped);
}
