import { performance } from 'node:perf_hooks';
import { givenUpBy } from '../attempts/outcome.js';
import type { AttemptOwner, RelayedAttempt } from '../attempts/relayed-attempt.js';
import { asGatewayError, type GatewayError, type GivenUpBy } from '../errors.js';
import type { CallOutcome } from '../metrics/call-record.js';
import { isVendorAccountError } from '../protocols/error-formats/vendor-account-error.js';
import type { AnswerTransform, WaitingEnd } from '../stream/answer-transform.js';
import type { ResponseHead, UpstreamExchange, UpstreamFailure } from '../upstream/client.js';
import { account } from './account.js';
import { over, type Phase } from './answer-phase.js';
import type { RoutedCall } from './call.js';
import { noteUsage } from './consumption.js';
import { keepEnd, sendStreamEnd } from './conversation/keep.js';
import { countUnread, releaseBody } from './memory-budget.js';
import { endFailedStream, outcomeOf, refuseStream } from './refuse.js';
import type { Services } from './services.js';

/*
 * How an answer ends that the relay hands on; but for `giveUp` before anything has left, each ends the call (`settle`).
 *
 * it is whole                                       `endGood`; of a stream at its protocol's end `endComplete`
 * an error event has passed, the upstream's or one that the translation made of it   `endFailed`
 * the upstream's connection broke                   `endDisconnected`: one of those above where all was there, else `breakOff`
 * a stream ended without its protocol's end         `breakOff`; where it is translated `endFailed`
 * it is of no use                                   `giveUp`: another target is asked; `breakOff` once some has left
 *
 * `breakOff` ends a stream with last words in the client's protocol, and cuts the connection of anything else. A fault of
 * ours ends in `failByUs` where the upstream's side has thrown, in `Relay.onOurFault` where the client's has.
 */

/** An answer that is being relayed, as far as its end is concerned. */
export interface RelayedAnswer {
  readonly services: Services;
  readonly call: RoutedCall;
  readonly owner: AttemptOwner;
  /** The attempt that answers, or what stands in its place until there is one. */
  upstream: UpstreamExchange | null;
  /** The attempt, where `upstream` is one. */
  readonly attempt: RelayedAttempt | null;
  /** Of the attempt. */
  transform: AnswerTransform | null;
  /** The upstream's. */
  readonly head: ResponseHead | null;
  phase: Phase;
  /** Some of an upstream's answer has left, or will with the next write. Until then another target may be asked. */
  readonly relayed: boolean;
  /** The client takes what is written as fast as it comes. */
  flowing: boolean;
  /** Nothing of this call is due any more. */
  stopTimers(): void;
}

/** How a call ended whose upstream's answer was handed on whole. */
export function answerOutcome(head: ResponseHead | null): CallOutcome {
  return (head?.status ?? 0) >= 400 ? 'upstream_error' : 'complete';
}

/**
 * The call is over.
 * @param isBroken its answer is not whole, and not because the client has left; an error answer has no usage in any case
 */
export function settle(
  answer: RelayedAnswer,
  outcome: CallOutcome,
  isBroken = outcome === 'upstream_error',
): void {
  const { services, call, upstream, transform } = answer;
  answer.phase = over;
  answer.stopTimers();
  releaseBody(services, call, upstream, transform);
  if (upstream?.sentAt) noteUsage(call, transform, answer.head, outcome, isBroken);
  answer.upstream = null;
  answer.transform = null;
  account(services, call, outcome);
  countUnread(services, call);
}

/** Gives an answer up that cannot be used: another target may be asked while none of it was relayed. */
export function giveUp(
  answer: RelayedAnswer,
  error: GatewayError,
  failure: UpstreamFailure | null = null,
  reason = givenUpBy(error),
): void {
  const { owner, phase } = answer;
  answer.phase = over;
  if (isVendorAccountError(error)) answer.attempt?.accountRefused(error);
  if (answer.relayed) breakOff(answer, error, reason, phase);
  else {
    cancelAttempt(answer, reason, error);
    owner.onAttemptFailed(error, failure ?? reason, tellsItself(error) ? answer.head : null);
  }
}

/** Whether an error is what the upstream's answer itself says. Of one about our account nothing passes. */
function tellsItself({ source, vendorAccountStatus }: GatewayError): boolean {
  return source === 'upstream' && vendorAccountStatus === null;
}

/** Gives up a stream that ended before its first event: it goes elsewhere as a call whose connection broke does. */
export function giveUnbegun(answer: RelayedAnswer, error: GatewayError): void {
  giveUp(answer, error, unbegun(error, performance.now() - answer.call.sentAt));
}

/** A stream that ended before its first event, as a connection that broke. @param sentMs since its request was sent */
function unbegun(error: GatewayError, sentMs: number): UpstreamFailure {
  return { reason: 'truncated', detail: error.message, bytesSent: true, headSeen: true, sentMs };
}

/** A mistake of ours costs its own call and nothing else. */
export function failByUs(answer: RelayedAnswer, fault: unknown): void {
  answer.services.reportFault('upstream', fault, answer.call);
  giveUp(answer, asGatewayError(fault), null, 'gateway_fault');
}

/** Nothing more is read of the present attempt's answer. */
function cancelAttempt({ attempt, upstream }: RelayedAnswer, reason: GivenUpBy, error: GatewayError): void {
  if (attempt === null) upstream?.cancel();
  else attempt.giveUp(reason, error);
}

/** The upstream's connection has broken in the middle of an answer of which some was relayed. */
export function endDisconnected(answer: RelayedAnswer, error: GatewayError): void {
  const { transform } = answer;
  const told = transform?.passedError ?? null;
  // All of the answer was there; how the connection ended says nothing about it.
  if (transform?.isComplete) endComplete(answer, transform);
  else if (told !== null) endFailed(answer, told);
  // The attempt has ended as a failure of its own already.
  else breakOff(answer, error);
}

/**
 * Ends an answer that has begun, and will not come to its end.
 * @param phase how far it had come
 */
export function breakOff(
  answer: RelayedAnswer,
  error: GatewayError,
  reason = givenUpBy(error),
  phase = answer.phase,
): void {
  cancelAttempt(answer, reason, error);
  // Nothing can be said in an answer that is no event stream: a cut connection is the only honest end.
  if (phase.name === 'bytes') {
    answer.call.error = error;
    answer.call.exchange.abort();
  } else writeLastWords(answer, phase, error);
  settle(answer, outcomeOf(error), true);
}

/** Tells the client of an event stream that it breaks off, and why. @param phase how far the answer had come */
export function writeLastWords(
  { call, transform, relayed }: RelayedAnswer,
  phase: Phase,
  error: GatewayError,
): void {
  refuseStream(call, error, {
    number: transform?.nextNumber ?? 0,
    insideEvent: phase.name === 'events' && phase.runs.overlong,
    words: (event) => (relayed ? (transform?.lastWords(error, event) ?? null) : null),
  });
}

/** Ends a stream whose upstream has told of an error in it: its words have left with what was passed last. */
export function endFailed(answer: RelayedAnswer, error: GatewayError): void {
  if (isVendorAccountError(error)) answer.attempt?.accountRefused(error);
  cancelAttempt(answer, givenUpBy(error), error);
  answer.call.error = error;
  endFailedStream(answer.call);
  settle(answer, 'upstream_error');
}

/** Ends a stream that has come to its protocol's own end, whether or not the upstream's connection has. */
export function endComplete(answer: RelayedAnswer, transform: AnswerTransform): void {
  const { last } = transform.end();
  if (last !== null) answer.call.exchange.write(last);
  if (transform.isCut) answer.upstream?.cancel();
  // Nothing of the upstream is passed on any more, so nothing has to wait for the client.
  answer.flowing = true;
  endGood(answer, transform);
}

/** Ends a stream of which all has left but what is held until it is kept. */
export function endGood(answer: RelayedAnswer, { waitingEnd }: AnswerTransform): void {
  whenKept(answer, waitingEnd, (result) => settle(answer, sendStreamEnd(answer.call, result, waitingEnd)));
}

/** @param send hears what is to leave, or why nothing may: at once where nothing is kept (null) */
export function whenKept(
  answer: RelayedAnswer,
  end: WaitingEnd | null,
  send: (result: Buffer | GatewayError | null) => void,
): void {
  if (end === null) {
    send(null);
    return;
  }
  const { services, call, phase } = answer;
  const behind = phase.name === 'events' && call.gatewayPath !== 'translated' ? phase : null;
  const keeping: Phase = { name: 'keeping', isStream: end.isStream, behind };
  answer.phase = keeping;
  keepEnd(services, call, end, (result) => answer.phase === keeping && send(result));
}
