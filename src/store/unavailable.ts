import { GatewayError } from '../errors.js';

/** What every call of a store rejects with: its cause is for the log. */
export function storeUnavailable(cause: unknown): GatewayError {
  return new GatewayError('store_unavailable', null, { retryAfter: 1, cause });
}

/** @returns the error that a call of a closed store rejects with */
export function storeClosed(): GatewayError {
  return storeUnavailable(new Error('the store is closed'));
}
