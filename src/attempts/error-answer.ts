import type { ConfiguredHeaders, Upstream } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { Call } from '../flow/call.js';
import {
  secretError,
  type VendorAccountStatus,
  vendorAccountError,
  vendorAccountStatusOf,
} from '../protocols/error-formats/vendor-account.js';
import type { ResponseHead } from '../upstream/types.js';
import { vendorStatus } from '../video/upstream-formats/native-error.js';
import { fieldsOf } from '../wire/head.js';
import { isObject } from '../wire/json.js';
import { namesAccount } from '../wire/passed-headers.js';
import { parseErrorBody, retryAfterMsOf, statusError } from './reported-error.js';

/*
 * Decides whether an error in an answer concerns the gateway's account, the upstream or the caller.
 *
 * - An answer with an error status: `readErrorAnswer`.
 * - An error inside a good status: `upstreamError` of the protocol or of `protocols/error-formats/`, then `reportedStatus`.
 *
 * Both give a status. From it, `verdict` decides whether the call is sent to another target, and `outcome` what the
 * answer shows about this one. `reported-error` makes the error for the caller.
 */

const longestCause = 8192;

/** How an upstream's error answer is judged. */
export interface ErrorAnswer {
  /**
   * The status by which its target and key are judged: 401, 402 or 403 if it is about the gateway's account, whatever
   * status it arrived with.
   */
  readonly status: number;
  /**
   * The error for the caller; null for an answer that may be passed on unchanged if the caller uses the upstream's
   * protocol.
   */
  readonly error: GatewayError | null;
  /** How long the upstream asks to be left alone; null if it does not say. */
  readonly retryAfterMs: number | null;
}

const nothing = Buffer.alloc(0);
const highestStatus = 599;

/**
 * A 403 that is not about the gateway's account is about the request, and is judged like any other mistake of the
 * caller.
 */
function judgedStatus(status: number): number {
  return status === 403 ? 400 : status;
}

/**
 * Returns the status by which an answer is judged that reports in its own words a problem of the gateway's account, a
 * limit, or the caller's mistake. It is judged as if it had arrived with that status. Null for any other error, which
 * is the upstream's failure.
 */
export function reportedStatus({ source, status, vendorAccountStatus }: GatewayError): number | null {
  if (vendorAccountStatus !== null) return vendorAccountStatus;
  return source === 'upstream' && status < 500 ? judgedStatus(status) : null;
}

/**
 * Reads an answer with an error status.
 * @param body the part of it that has arrived
 */
export function readErrorAnswer(upstream: Upstream, head: ResponseHead, body: Buffer): ErrorAnswer {
  const { status } = head;
  const parsed = parseErrorBody(body);
  const retryAfterMs = retryAfterMsOf(head, parsed);
  const numbered = isObject(parsed) ? vendorStatus(upstream.kind, parsed) : null;
  const account = numbered ?? vendorAccountStatusOf(status, parsed);
  if (account !== null) return { status: account, error: accountError(account, status, body), retryAfterMs };
  const judged = judgedStatus(status);
  // Not a status of HTTP (RFC 9110 section 15), so it cannot be passed on.
  if (status > highestStatus)
    return { status: judged, error: new GatewayError('upstream_error'), retryAfterMs };
  // A body without a JSON object is an HTML page of a proxy, and one with a secret echoes the gateway's own request:
  // only the status is reported. It is judged by the status in any case. Otherwise a caller who gets an upstream to
  // echo the gateway's key would make that key count as refused.
  const passes = parsed !== null && secretError(body.toString('utf8'), upstream.secrets) === null;
  return { status: judged, error: passes ? null : statusError(head, nothing), retryAfterMs };
}

function accountError(account: VendorAccountStatus, status: number, body: Buffer): GatewayError {
  return vendorAccountError(account, `status ${status}: ${body.toString('utf8', 0, longestCause)}`);
}

/**
 * Whether a client's request names an account at an upstream, as the config allows. The gateway's key may then be
 * refused without being at fault, and a caller could otherwise get every key barred.
 */
export function carriesAccount({ exchange }: Call, { clientHeaders }: ConfiguredHeaders): boolean {
  const pass = clientHeaders?.pass;
  if (pass === undefined || pass.size === 0) return false;
  return fieldsOf(exchange.head.passed).some(([name]) => pass.has(name) && namesAccount(name));
}
