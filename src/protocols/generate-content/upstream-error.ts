import type { ErrorKind, GatewayError } from '../../errors.js';
import { type JsonObject, textOrNull } from '../../wire/json.js';
import { brokenEvent, foreignEvent, upstreamErrorOf } from '../error-formats/upstream-error.js';

/** What the vendor's errors mean, by their `status` (google.rpc.Code) and by their `code`. */
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

/** The failure that the `error` of a body or of a stream's block tells of. */
export function upstreamError(error: JsonObject): GatewayError {
  // The number is the closer word of the two: several of them have one name.
  return upstreamErrorOf(error, kinds.get(error.code) ?? kinds.get(error.status));
}

/** The failure of a stream with a block that is none of the protocol's. @param block null for what is no JSON object */
export function foreignBlock(block: JsonObject | null): GatewayError {
  if (block === null) return brokenEvent('generateContent');
  return foreignEvent('generateContent', textOrNull(block.type), 'an event without candidates');
}
