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
import { parseErrorBody, retryAfterMsOf, statusError } from './told-error.js';

/*
 * Whose business an answer is that tells of an error: our account's, the upstream's or the caller's. One with an error
 * status is read by `readErrorAnswer`, one with an error inside a good status by `upstreamError` of its protocol or of
 * `error-formats/`, and then by `toldStatus`. By the status that these give, `verdict` says whether another target is
 * asked, and `outcome` what it says of this one. What the caller is told is in `told-error`.
 */

const longestCause = 8192;

/** What an upstream's error answer comes to. */
export interface ErrorAnswer {
  /** By which its target and key are judged: 401, 402 or 403 where it is about our account there, whatever it came with. */
  readonly status: number;
  /** What the caller is told; null for an answer that may pass as it came, where he speaks its protocol. */
  readonly error: GatewayError | null;
  /** For so long the upstream wants to be left alone; null where it does not say. */
  readonly retryAfterMs: number | null;
}

const nothing = Buffer.alloc(0);
const highestStatus = 599;

/** A 403 that is not about our account is about what was asked, and is judged as any other mistake of the caller. */
function judgedStatus(status: number): number {
  return status === 403 ? 400 : status;
}

/**
 * The status by which an answer is judged that says in its own words what is wrong: our account there, a limit, or the
 * caller's mistake, as if it had come with it. Null for any other error, which is the upstream's failure.
 */
export function toldStatus({ source, status, vendorAccountStatus }: GatewayError): number | null {
  if (vendorAccountStatus !== null) return vendorAccountStatus;
  return source === 'upstream' && status < 500 ? judgedStatus(status) : null;
}

/**
 * Reads an answer with an error status.
 * @param body as much of it as has come
 */
export function readErrorAnswer(upstream: Upstream, head: ResponseHead, body: Buffer): ErrorAnswer {
  const { status } = head;
  const parsed = parseErrorBody(body);
  const retryAfterMs = retryAfterMsOf(head, parsed);
  const numbered = isObject(parsed) ? vendorStatus(upstream.kind, parsed) : null;
  const account = numbered ?? vendorAccountStatusOf(status, parsed);
  if (account !== null) return { status: account, error: accountError(account, status, body), retryAfterMs };
  const judged = judgedStatus(status);
  // Pages of what stands in between, an echo of our own request: the status alone is told.
  if (status > highestStatus)
    return { status: judged, error: new GatewayError('upstream_error'), retryAfterMs };
  // The status says whose mistake it is: a caller who gets an upstream to echo our key costs the key nothing.
  const passes = parsed !== null && secretError(body.toString('utf8'), upstream.secrets) === null;
  return { status: judged, error: passes ? null : statusError(head, nothing), retryAfterMs };
}

function accountError(account: VendorAccountStatus, status: number, body: Buffer): GatewayError {
  return vendorAccountError(account, `status ${status}: ${body.toString('utf8', 0, longestCause)}`);
}

/**
 * Whether a client's request names an account at an upstream, as the config lets it. Our key may be refused beside it
 * without being at fault, and a caller could bring every key into disrepute so.
 */
export function carriesAccount({ exchange }: Call, { clientHeaders }: ConfiguredHeaders): boolean {
  const pass = clientHeaders?.pass;
  if (pass === undefined || pass.size === 0) return false;
  return fieldsOf(exchange.head.passed).some(([name]) => pass.has(name) && namesAccount(name));
}
