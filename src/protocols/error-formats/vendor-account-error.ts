import { GatewayError } from '../../errors.js';

/**
 * The status that says what is wrong: the key is not accepted, the account is spent, or it has not the right. The last
 * may be a matter of what was asked.
 */
export type VendorAccountStatus = 401 | 402 | 403;

/** An error about the gateway's account at an upstream. */
export interface VendorAccountError extends GatewayError {
  readonly vendorAccountStatus: VendorAccountStatus;
}

/** True for what `vendorAccountError` gives. */
export function isVendorAccountError(error: GatewayError | null): error is VendorAccountError {
  return error !== null && error.vendorAccountStatus !== null;
}

const longestCause = 8192;

/**
 * What callers are told in place of an answer about our account.
 * @param cause what it was, for the log alone, where its secrets are masked
 */
export function vendorAccountError(status: VendorAccountStatus, cause: string): GatewayError {
  return new GatewayError('upstream_error', "The upstream does not accept the gateway's account.", {
    vendorAccountStatus: status,
    cause: cause.slice(0, longestCause),
  });
}
