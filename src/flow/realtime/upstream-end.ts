import { masked } from '../../attempts/secrets.js';
import type { Upstream } from '../../config/types.js';
import { type AttemptFailure, GatewayError } from '../../errors.js';
import {
  isVendorAccountError,
  vendorAccountErrorOfClose,
} from '../../protocols/error-formats/vendor-account.js';
import type { SocketFault } from '../../upstream/socket-types.js';
import { closeCode } from '../../wire/close-code.js';

/** The meaning of the end of an upstream's side. */
interface UpstreamEnd {
  /** How the attempt failed; null if it did not, or if the error is about our account. */
  readonly failure: AttemptFailure | null;
  /** Null for an orderly end. */
  readonly error: GatewayError | null;
  /** Close code for the client with the error; null if it gets the upstream's own code and reason. */
  readonly code: number | null;
}

const orderly: ReadonlySet<number> = new Set([closeCode.normal, closeCode.noCode, closeCode.goingAway]);
/** Codes which say that the server cannot continue. Any other may be caused by the client. */
const serverCodes: ReadonlySet<number> = new Set([
  closeCode.protocolError,
  closeCode.internal,
  closeCode.restart,
  closeCode.tryLater,
  closeCode.badGateway,
]);

/** How an upstream ends a session in which it gets no answers to its pings. */
const silentFailures: ReadonlySet<AttemptFailure> = new Set(['truncated', 'reset', 'idle_timeout']);

/**
 * How an attempt failed by the end of a session; null if the client may have caused it.
 * @param hasStalled whether the client let messages wait, and with them the upstream's pings
 */
export function failureOf({ failure }: UpstreamEnd, hasStalled: boolean): AttemptFailure | null {
  return failure !== null && hasStalled && silentFailures.has(failure) ? null : failure;
}

/**
 * Interprets an upstream's close frame.
 * @param isWithin whether a response was in progress, whose rest will not arrive
 */
export function endOfClose(code: number, reason: string, isWithin: boolean, upstream: Upstream): UpstreamEnd {
  const closeError = vendorAccountErrorOfClose(code, reason, upstream.secrets);
  if (isVendorAccountError(closeError)) return { failure: null, error: closeError, code: closeCode.internal };
  const isCut = isWithin && code === closeCode.goingAway;
  if (orderly.has(code) && !isCut && closeError === null) return { failure: null, error: null, code: null };
  const cause = reason === '' ? `close ${code}` : `close ${code}: ${masked(reason, upstream)}`;
  return {
    failure: isCut || serverCodes.has(code) ? 'truncated' : null,
    error: new GatewayError('upstream_error', closeError?.message ?? 'The upstream closed the session.', {
      cause,
    }),
    code: closeError === null ? null : closeCode.internal,
  };
}

/** Interprets an end without an upstream's close frame. @param sent the code that reports it */
export function endOfFault(sent: number, { reason, detail }: SocketFault): UpstreamEnd {
  const isBroken = sent === closeCode.broken;
  const failed = (error: GatewayError, code: number | null): UpstreamEnd => ({
    failure: reason,
    error,
    code,
  });
  if (reason === 'no_room') return failed(noRoom, closeCode.tryLater);
  const cause = `${reason}: ${detail}`;
  if (!isBroken) return failed(new GatewayError('upstream_error', null, { cause }), null);
  const error =
    reason === 'idle_timeout'
      ? new GatewayError('upstream_timeout', 'The upstream no longer responds.', { cause })
      : new GatewayError('upstream_error', 'The connection to the upstream was lost.', { cause });
  return failed(error, closeCode.internal);
}

// Created once, so that a flood of them costs no stack traces.
const noRoom = new GatewayError(
  'overloaded',
  "There is no memory for the upstream's message: the WebSockets of this key hold as much as they may.",
  { cause: 'no_room: a message found no room' },
);
