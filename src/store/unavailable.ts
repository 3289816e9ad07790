import { GatewayError } from '../errors.js';

/** Makes the error with which all calls of a store reject. The cause is for the log. */
export function storeUnavailable(cause: unknown): GatewayError {
  return new GatewayError('store_unavailable', null, { retryAfter: 1, cause });
}

/** @returns the error with which calls of a closed store reject */
export function storeClosed(): GatewayError {
  return storeUnavailable(new Error('the store is closed'));
}
