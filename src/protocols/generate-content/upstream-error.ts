import type { ErrorKind, GatewayError } from '../../errors.js';
import { type JsonObject, textOrNull } from '../../wire/json.js';
import { brokenEvent, foreignEvent, upstreamErrorOf } from '../error-formats/upstream-error.js';

/** Kinds of the vendor's errors, by their `status` (google.rpc.Code) and by their `code`. */
const kinds: ReadonlyMap<unknown, ErrorKind> = new Map<unknown, ErrorKind>([
  ['RESOURCE_EXHAUSTED', 'rate_limit_exceeded'],
  [429, 'rate_limit_exceeded'],
  ['UNAVAILABLE', 'overloaded'],
  [503, 'overloaded'],
  ['DEADLINE_EXCEEDED', 'upstream_timeout'],
  [504, 'upstream_timeout'],
  ['INVALID_ARGUMENT', 'invalid_request'],
  ['FAILED_PRECONDITION', 'invalid_request'],
  ['OUT_OF_RANGE', 'invalid_request'],
  [400, 'invalid_request'],
  ['UNAUTHENTICATED', 'invalid_api_key'],
  [401, 'invalid_api_key'],
  ['PERMISSION_DENIED', 'permission_denied'],
  [403, 'permission_denied'],
  ['NOT_FOUND', 'not_found'],
  [404, 'not_found'],
  ['ABORTED', 'conflict'],
  ['ALREADY_EXISTS', 'conflict'],
  [409, 'conflict'],
  [413, 'request_too_large'],
]);

/** Returns the failure that the `error` of a body or of a stream's block reports. */
export function upstreamError(error: JsonObject): GatewayError {
  // The number is more exact: several numbers share a name.
  return upstreamErrorOf(error, kinds.get(error.code) ?? kinds.get(error.status));
}

/**
 * Returns the failure of a stream with a block of another protocol.
 * @param block null for anything but a JSON object
 */
export function foreignBlock(block: JsonObject | null): GatewayError {
  if (block === null) return brokenEvent('generateContent');
  return foreignEvent('generateContent', textOrNull(block.type), 'an event without candidates');
}
