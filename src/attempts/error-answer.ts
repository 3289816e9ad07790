import type { Upstream } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { secretFailure } from '../protocols/error-formats/own-secrets.js';
import { vendorAccountStatusOf } from '../protocols/error-formats/vendor-account.js';
import {
  type VendorAccountStatus,
  vendorAccountError,
} from '../protocols/error-formats/vendor-account-error.js';
import type { ResponseHead } from '../upstream/client.js';
import { vendorStatus } from '../video/upstream-formats/native-error.js';
import { isObject, parseJson } from '../wire/json.js';
import { statusError } from './failure.js';

const longestCause = 8192;

/** What an upstream's error answer comes to. */
export interface ErrorAnswer {
  /** By which its target and key are judged: 401, 402 or 403 where it is about our account there, whatever it came with. */
  readonly status: number;
  /** What the caller is told; null for an answer that may pass as it came, where he speaks its protocol. */
  readonly error: GatewayError | null;
}

const nothing = Buffer.alloc(0);
/** What a caller's own mistake is judged by that came as 403. */
const ofCaller = 400;
const highestStatus = 599;

/**
 * Reads an error answer: the one place that decides whose business it is.
 * @param body as much of it as has come
 */
export function readErrorAnswer(upstream: Upstream, head: ResponseHead, body: Buffer): ErrorAnswer {
  const { status } = head;
  const parsed = parseAnswer(body);
  const numbered = isObject(parsed) ? vendorStatus(upstream.kind, parsed) : null;
  const account = numbered ?? vendorAccountStatusOf(status, parsed);
  if (account !== null) return { status: account, error: refusal(account, status, body) };
  const judged = status === 403 ? ofCaller : status;
  // Pages of what stands in between, an echo of our own request: the status alone is told.
  if (status > highestStatus) return { status: judged, error: new GatewayError('upstream_error') };
  // The status says whose mistake it is: a caller who gets an upstream to echo our key costs the key nothing.
  const passes = parsed !== null && secretFailure(body.toString('utf8'), upstream.secrets) === null;
  return { status: judged, error: passes ? null : statusError(head, nothing) };
}

function refusal(account: VendorAccountStatus, status: number, body: Buffer): GatewayError {
  return vendorAccountError(account, `status ${status}: ${body.toString('utf8', 0, longestCause)}`);
}

/** Null for what is no JSON object, and no list of them: some upstreams put theirs into one. */
function parseAnswer(body: Buffer): unknown {
  const value = body.length === 0 ? null : parseJson(body.toString('utf8'));
  return isObject(value) || (Array.isArray(value) && value.some(isObject)) ? value : null;
}
