import type { RelayedAttempt } from '../../attempts/relayed-attempt.js';
import { GatewayError } from '../../errors.js';
import { warmUpAnswer } from '../../protocols/responses/socket-message.js';
import type { Deadlines, UpstreamExchange } from '../../upstream/types.js';
import { answerId, type RoutedCall } from '../call.js';
import type { Services } from '../services.js';
import { socketRequest } from '../upstream/head.js';
import { type Prepared, postAttempt } from '../upstream/prepare.js';
import type { SocketCall } from './upstream-session.js';

const atPrevious = { param: 'previous_response_id' };

/** An attempt of a call that arrived as a message. */
interface SocketAttempt {
  readonly socketCall: SocketCall;
  readonly attempt: RelayedAttempt;
  readonly prepared: Prepared;
  readonly deadlines: Deadlines;
  /** Sends an answer made by the gateway itself. */
  readonly answerJson: (json: string) => void;
}

/**
 * Sends an attempt of a call that arrived as a message: over a WebSocket if its upstream has one, else as a request.
 * @returns null if the gateway has answered
 */
export function sendSocketCall(
  services: Services,
  call: RoutedCall,
  { socketCall, attempt, prepared, deadlines, answerJson }: SocketAttempt,
): UpstreamExchange | null {
  const { target, keyIndex } = attempt;
  const { upstreamPath, protocol, body, hasEffects } = prepared;
  const { isWarmUp, upstreamSession } = socketCall;
  const isTranslated = prepared.gatewayPath === 'translated';
  const otherwise = (): UpstreamExchange | null => {
    socketCall.madeBy = isTranslated || isWarmUp ? 'gateway' : 'request';
    if (!isWarmUp) return postAttempt(services, call, attempt, prepared, deadlines);
    attempt.withdraw();
    answerJson(warmUpText(call));
    return null;
  };
  if (!upstreamSession.takes(target, isTranslated)) return otherwise();
  socketCall.madeBy = 'session';
  const vendor = call.exchange.head;
  return upstreamSession.send({
    target,
    keyIndex,
    body,
    hasEffects,
    socketRequest: () => socketRequest(call, target, upstreamPath, { protocol, vendor, keyIndex }),
    deadlines,
    handler: attempt,
    isWarmUp,
    otherwise,
  });
}

/**
 * Begins a translated call that arrived as a message.
 * @returns the answer to a warm-up, whose input only the gateway remembers; null for any other call
 * @throws {GatewayError} for a call that continues a response which only another upstream can know
 */
export function beginTranslatedMessage(call: RoutedCall, socketCall: SocketCall): string | null {
  socketCall.madeBy = 'gateway';
  if (socketCall.previousId !== null && call.recalled?.turn == null)
    throw new GatewayError('previous_response_not_found', undefined, atPrevious);
  return socketCall.isWarmUp ? warmUpText(call) : null;
}

function warmUpText(call: RoutedCall): string {
  return warmUpAnswer(call.model.name, answerId(call), Math.floor(Date.now() / 1000));
}
