import { answeredAs, GatewayError } from '../../errors.js';
import {
  type VendorAccountStatus,
  vendorAccountError,
} from '../../protocols/error-formats/vendor-account.js';
import { type JsonObject, numberOrNull } from '../../wire/json.js';
import { failureKind } from '../failure-codes.js';

const longestMessage = 2000;

/**
 * The error for a code other than 0 in an answer of the vendork format. Codes 1000 to 1004, 1100 to 1103 and 1304 are
 * about the gateway's account, which clients are not told about.
 * @param code the vendor's code
 * @param message the vendor's message
 */
export function vendorkError(code: number, message: unknown): GatewayError {
  const account = vendorkAccount(code);
  if (account !== null) return ofVendorAccount(account, code, message);
  switch (code) {
    case 1200:
    case 1201:
      return badRequest(message, null);
    case 1202:
    case 1203:
      return answeredAs('not_found', wordsOf(message));
    case 5001:
      return answeredAs('overloaded', wordsOf(message));
    case 5002:
      return answeredAs('upstream_timeout', wordsOf(message));
    default:
      return contentError(code, message);
  }
}

/** Codes of the vendor about a parameter or an image of the request, such as 50215. */
const vendorjFault = /^502\d\d$/;

/**
 * The error for a code other than 10000 in an answer of the vendorj format.
 * @param code the vendor's code
 * @param message the vendor's message
 */
export function vendorjError(code: number, message: unknown): GatewayError {
  const account = vendorjAccount(code);
  if (account !== null) return ofVendorAccount(account, code, message);
  return vendorjFault.test(String(code)) ? badRequest(message, null) : contentError(code, message);
}

/**
 * The status of the gateway's account by the code of an error answer, for upstreams of the two vendors.
 * @param answer the parsed answer; null if it is not a JSON object
 */
export function vendorStatus(kind: string, answer: JsonObject | null): VendorAccountStatus | null {
  const code = numberOrNull(answer?.code);
  if (code === null) return null;
  if (kind === 'vendork') return vendorkAccount(code);
  // With an error status, 50400 may stand for any invalid request.
  return kind === 'vendorj' && code !== 50400 ? vendorjAccount(code) : null;
}

/** 402: arrears or a used-up package. The others are about the key, the account, or the addresses that may use it. */
function vendorkAccount(code: number): VendorAccountStatus | null {
  if (code === 1101 || code === 1102) return 402;
  if (code === 1103) return 403;
  return (code >= 1000 && code < 1200) || code === 1304 ? 401 : null;
}

function vendorjAccount(code: number): VendorAccountStatus | null {
  if (code === 50402) return 402;
  return [50400, 50401, 50403].includes(code) ? 401 : null;
}

function contentError(code: number, message: unknown): GatewayError {
  const kind = failureKind(String(code));
  if (kind === 'policy') return badRequest(message, 'content_policy_violation');
  if (kind === 'limit') return answeredAs('rate_limit_exceeded', wordsOf(message), 'rate_limit_exceeded');
  return new GatewayError('upstream_error', wordsOf(message), { cause: `code ${code}` });
}

function badRequest(message: unknown, code: string | null): GatewayError {
  return answeredAs('invalid_request', wordsOf(message), code);
}

function ofVendorAccount(status: VendorAccountStatus, code: number, message: unknown): GatewayError {
  return vendorAccountError(status, `code ${code}: ${wordsOf(message)}`);
}

function wordsOf(message: unknown): string {
  return typeof message === 'string' && message !== ''
    ? message.slice(0, longestMessage)
    : 'The upstream answered with an error and no message.';
}
