import type { Upstream } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { type AccountStatus, accountError, accountStatusOf } from '../protocols/error-formats/own-account.js';
import type { ResponseHead } from '../upstream/client.js';
import { vendorStatus } from '../video/wires/native-error.js';
import { isObject, type JsonObject, parseJson } from '../wire/json.js';
import { statusError } from './failure.js';
import { holdsSecret } from './secrets.js';

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
  const account = vendorStatus(upstream.kind, parsed) ?? accountStatusOf(status, parsed);
  if (account !== null) return { status: account, error: refusal(account, status, body) };
  const judged = status === 403 ? ofCaller : status;
  // Pages of what stands in between, an echo of our own request: the status alone is told.
  if (status > highestStatus) return { status: judged, error: new GatewayError('upstream_error') };
  const passes = parsed !== null && !holdsSecret(body, upstream);
  return { status: judged, error: passes ? null : statusError(head, nothing) };
}

function refusal(account: AccountStatus, status: number, body: Buffer): GatewayError {
  return accountError(account, `status ${status}: ${body.toString('utf8', 0, longestCause)}`);
}

const longestCause = 8192;

/** An answer that is an object, also one that some upstreams put into an array. */
function parseAnswer(body: Buffer): JsonObject | null {
  const value = body.length === 0 ? null : parseJson(body.toString('utf8'));
  if (Array.isArray(value)) return value.find(isObject) ?? null;
  return isObject(value) ? value : null;
}
