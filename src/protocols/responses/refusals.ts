import { GatewayError } from '../../errors.js';
import { textOrNull } from '../../wire/json.js';

/*
 * The 400s for what stands in a client's body and cannot be read.
 */

const longestName = 64;

/** What a `type` or a `role` is called in a message: it may be of any shape. */
export function nameOfType(type: unknown): string {
  return textOrNull(type)?.slice(0, longestName) ?? 'unknown';
}

/** The detail of a refusal: what type the refused thing has. */
export function ofType(type: unknown): string {
  return `of type '${nameOfType(type)}'`;
}

/** The 400 for a member that is not there. */
export function missing(param: string, wanted: string): GatewayError {
  return new GatewayError('missing_parameter', `Missing required parameter '${param}': expected ${wanted}.`, {
    param,
  });
}

/** The 400 for a value of another type than the one that is wanted. */
export function wrongType(param: string, wanted: string): GatewayError {
  return new GatewayError('invalid_request', `Invalid type for '${param}': expected ${wanted}.`, { param });
}

/** The 400 for a value that means nothing here. @param why a part of a sentence */
export function invalid(param: string, why: string): GatewayError {
  return new GatewayError('invalid_value', `Invalid value for '${param}': ${why}.`, { param });
}
