import { reportedStatus } from '../../attempts/error-answer.js';
import { provesNotExecuted } from '../../attempts/verdict.js';
import type { Target } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { errorToReport, isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { upstreamFormatOf } from '../../video/formats.js';
import type { UpstreamFormat, VideoCall, VideoFormat, VideoRequest } from '../../video/task.js';
import { nativeErrorIn } from '../../video/upstream-formats/shared.js';
import { objectOf, parseObject, textOrNull } from '../../wire/json.js';
import { answerError } from '../answer/content.js';
import { type CollectedAnswer, isFailure } from '../upstream/collect.js';
import { secretOf } from './answer.js';

/*
 * What an upstream's answer to a submission means.
 */

/** The target that a submission is sent to, and the request for it. */
export interface Destination {
  readonly target: Target;
  readonly upstreamFormat: UpstreamFormat;
  readonly request: VideoCall;
  readonly apiKey: string | null;
}

/** The format that the target's upstream speaks. */
export function formatOf({ target }: Destination): VideoFormat {
  return upstreamFormatOf(target.upstream.kind);
}

/**
 * Reads an answer with a success status.
 * @throws {GatewayError} the error that the answer reports, without secrets; also for a task that failed over our account
 */
export function readCreated(
  { upstreamFormat, target }: Destination,
  body: Buffer,
): ReturnType<UpstreamFormat['readCreated']> {
  const { secrets } = target.upstream;
  try {
    const created = upstreamFormat.readCreated(body);
    const secret = secretOf(created.update?.error ?? null, secrets);
    if (secret !== null) throw secret;
    return created;
  } catch (fault) {
    throw fault instanceof GatewayError ? errorToReport(fault, body.toString('utf8'), secrets) : fault;
  }
}

/** The error in an answer with a success status which says that no task was created; else null. */
export function errorIn(destination: Destination, { head, body }: CollectedAnswer): GatewayError | null {
  if (answerError(head, false) !== null) return null;
  try {
    readCreated(destination, body);
    return null;
  } catch (fault) {
    return fault instanceof GatewayError && !fault.unrepeatable ? fault : null;
  }
}

/**
 * Whether the error in an answer with a success status proves that no task was created. An upstream that reports a
 * timeout or overload may have passed the request on all the same, as with the status of such an error.
 */
export function isRefusal({ kind, status, unrepeatable }: GatewayError, sentMs: number): boolean {
  if (unrepeatable) return false;
  return (kind !== 'upstream_timeout' && kind !== 'overloaded') || provesNotExecuted(status, sentMs);
}

/** The status that such an error stands for; null if it may be the caller's mistake as well as the upstream's. */
export function statusOf(error: GatewayError): number | null {
  return reportedStatus(error) ?? (error.kind === 'overloaded' ? error.status : null);
}

/** @returns whether the upstream answered with a success status */
export function isMade(answer: CollectedAnswer | UpstreamFailure): answer is CollectedAnswer {
  return !isFailure(answer) && answer.head.status < 300;
}

/**
 * Whether an answer with a success status is a refusal by a native code.
 * @param fault the error that it was read as; another one if clients may not see the answer
 */
export function isNativeRefusal(destination: Destination, body: Buffer, fault: GatewayError): boolean {
  return (
    nativeErrorIn(formatOf(destination), body)?.message === fault.message && !isVendorAccountError(fault)
  );
}

/**
 * The error of an error status with what it lacks of its body: the code by which formats tell refused content from a
 * mistake, if the vendor writes a number, and the member at fault, if the client has it under the same name.
 */
export function translatedError(
  error: GatewayError,
  {
    destination,
    request,
    body,
  }: { readonly destination: Destination; readonly request: VideoRequest; readonly body: Buffer },
): GatewayError {
  const native = nativeErrorIn(formatOf(destination), body);
  const named = textOrNull(objectOf(parseObject(body.toString('utf8'))?.error).param);
  const param = named !== null && Object.hasOwn(request.body, named) ? named : null;
  const code = native !== null && native.status < 500 ? native.code : null;
  if (param === null && code === null) return error;
  const { kind, message, status, retryAfter, unrepeatable } = error;
  return new GatewayError(kind, message, {
    answered: { status, code: error.code ?? code },
    param,
    retryAfter,
    unrepeatable,
  });
}
