import { masked } from '../../attempts/secrets.js';
import type { Upstream } from '../../config/types.js';
import { type AttemptFailure, GatewayError } from '../../errors.js';
import { vendorAccountErrorOfClose } from '../../protocols/error-formats/vendor-account.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account-error.js';
import type { SocketFault } from '../../upstream/socket.js';
import { closeCode } from '../../wire/close-code.js';

/** What it means that an upstream's side of a session has ended. */
interface UpstreamEnd {
  /** How the attempt has failed; null where it has not, or where the error says it as one about our account. */
  readonly failure: AttemptFailure | null;
  /** Null for an orderly end. */
  readonly error: GatewayError | null;
  /** With which the client is told the error; null where it gets the upstream's own code and reason. */
  readonly code: number | null;
}

const orderly: ReadonlySet<number> = new Set([closeCode.normal, closeCode.noCode, closeCode.goingAway]);
/** They say that the server cannot go on. What any other says may be the doing of the client. */
const ofServer: ReadonlySet<number> = new Set([
  closeCode.protocolError,
  closeCode.internal,
  closeCode.restart,
  closeCode.tryLater,
  closeCode.badGateway,
]);

/** How an upstream ends a session of which it hears nothing. */
const ofSilence: ReadonlySet<AttemptFailure> = new Set(['truncated', 'reset', 'idle_timeout']);

/**
 * How an attempt has failed by the end of a session; null for what may be the client's doing.
 * @param hasStalled the client has let its messages wait, and with them the upstream's pings
 */
export function failureOf({ failure }: UpstreamEnd, hasStalled: boolean): AttemptFailure | null {
  return failure !== null && hasStalled && ofSilence.has(failure) ? null : failure;
}

/**
 * Judges a close frame of an upstream.
 * @param isWithin a response is under way, of which the rest will not come
 */
export function endOfClose(code: number, reason: string, isWithin: boolean, upstream: Upstream): UpstreamEnd {
  const told = vendorAccountErrorOfClose(code, reason, upstream.secrets);
  if (isVendorAccountError(told)) return { failure: null, error: told, code: closeCode.internal };
  const isCut = isWithin && code === closeCode.goingAway;
  if (orderly.has(code) && !isCut && told === null) return { failure: null, error: null, code: null };
  const cause = reason === '' ? `close ${code}` : `close ${code}: ${masked(reason, upstream)}`;
  return {
    failure: isCut || ofServer.has(code) ? 'truncated' : null,
    error: new GatewayError('upstream_error', told?.message ?? 'The upstream closed the session.', { cause }),
    code: told === null ? null : closeCode.internal,
  };
}

/** Judges an end without a close frame of the upstream. @param sent the code that tells of it */
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
      ? new GatewayError('upstream_timeout', 'The upstream does not answer any more.', { cause })
      : new GatewayError('upstream_error', 'The connection to the upstream was lost.', { cause });
  return failed(error, closeCode.internal);
}

// Made once: a flood of them pays for no stack traces.
const noRoom = new GatewayError(
  'overloaded',
  "There is no memory for the upstream's message: the WebSockets of this key hold as much as they may.",
  { cause: 'no_room: a message found no room' },
);
