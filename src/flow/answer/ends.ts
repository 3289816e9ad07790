import { performance } from 'node:perf_hooks';
import type { Wait } from '../../attempts/attempts.js';
import { givenUpBy } from '../../attempts/outcome.js';
import { type AttemptOwner, RelayedAttempt } from '../../attempts/relayed-attempt.js';
import { asGatewayError, type GatewayError, type GivenUpBy } from '../../errors.js';
import { SweepMember } from '../../http/sweep.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import type { AnswerTransform, WaitingEnd } from '../../stream/answer-transform.js';
import type { ResponseHead, UpstreamFailure } from '../../upstream/types.js';
import type { RoutedCall } from '../call.js';
import { keepEnd, sendStreamEnd } from '../conversation/keep.js';
import { countUnread, releaseBody } from '../memory-budget.js';
import { account } from '../record/account.js';
import { noteUsage } from '../record/consumption.js';
import { endFailedStream, outcomeOf, refuseStream } from '../refuse.js';
import type { Services } from '../services.js';
import type { Hedge } from '../upstream/hedge.js';
import { ended, type Phase, waiting } from './phase.js';

/**
 * The ends of an answer that `Relay` passes on, and the state that both share. Each of these ends the call (`finish`), except
 * `giveUp` before any part of the answer was sent:
 *
 * it is complete                                      `endGood`; for a stream at its protocol's end `endComplete`
 * an error event was sent, as it came or translated   `endFailed`
 * a stream ended without its protocol's end           `endBroken`; if it is translated `endFailed`
 * it is useless                                       `giveUp`: another target is tried; `endBroken` if a part was sent
 * the upstream's connection broke, or took too long   `endFailedUpstream`, which calls
 *   the whole answer had arrived                        `endComplete`
 *   an error event was sent                             `endFailed`
 *   else                                                `endBroken`
 *
 * `endBroken` ends a stream with last words in the client's protocol, and cuts the connection of any other answer. An
 * unexpected exception on the upstream's side ends in `failByUs`, one on the client's side in `Relay.onOurFault`.
 */
export abstract class AnswerEnds extends SweepMember {
  readonly services: Services;
  readonly call: RoutedCall;
  /** Notified of an attempt that failed while another may follow: the call's `Forwarding`. */
  readonly owner: AttemptOwner;
  /** The source of the answer, which can be cancelled and resumed: an attempt, a hedge of two, or a wait before the next. */
  awaited: RelayedAttempt | Hedge | Wait | null = null;
  /** The transform of the attempt that answers; null while there is none. */
  transform: AnswerTransform | null = null;
  /** Head of the upstream's answer. */
  head: ResponseHead | null = null;
  phase: Phase = waiting;
  /**
   * What was sent to the client, or will be with the next write. `head` is that of a stream, with keep-alives after it.
   * Another target may be tried until some of the upstream's `answer` was sent.
   */
  handedOn: 'nothing' | 'head' | 'answer' = 'nothing';
  /** The client reads what is written as fast as it arrives. */
  flowing = true;
  /** The timer of the time until the first event, as long as a limit applies to it. */
  firstTokenTimer: NodeJS.Timeout | undefined;

  constructor(services: Services, call: RoutedCall, owner: AttemptOwner) {
    super();
    this.services = services;
    this.call = call;
    this.owner = owner;
  }

  /** The attempt that answers; null while there is none, or more than one. */
  get attempt(): RelayedAttempt | null {
    return this.awaited instanceof RelayedAttempt ? this.awaited : null;
  }

  /** Ends the limit on the time until the first event, also where that time is over and only a last read is waited for. */
  stopFirstTokenTimer(): void {
    clearTimeout(this.firstTokenTimer);
    this.firstTokenTimer = undefined;
  }

  /** Stops the call's timers, and removes it from the sweep list. */
  stopTimers(): void {
    this.stopFirstTokenTimer();
    this.services.sweepList.remove(this);
  }

  /**
   * Ends the call.
   * @param isBroken its answer is incomplete, and not because the client has disconnected. An error answer never has usage
   */
  finish(outcome: CallOutcome, isBroken = outcome === 'upstream_error'): void {
    const { services, call, awaited, transform } = this;
    this.phase = ended;
    this.stopTimers();
    releaseBody(services, call, awaited, transform);
    const isErrorComing = this.attempt?.isErrorComing ?? false;
    const isSent = awaited?.sentAt && (this.head !== null || awaited.isWritten);
    if (isSent && !isErrorComing) noteUsage(call, transform, this.head, outcome, isBroken);
    this.awaited = null;
    this.transform = null;
    account(services, call, outcome);
    countUnread(services, call);
  }

  /** Ends a call whose whole answer was sent. */
  finishWhole({ status }: ResponseHead): void {
    this.finish(status >= 400 ? 'upstream_error' : 'complete');
  }

  /** Gives up a useless answer. Another target may be tried if nothing of the answer was relayed. */
  giveUp(error: GatewayError, failure: UpstreamFailure | null = null, reason = givenUpBy(error)): void {
    const { phase } = this;
    this.phase = ended;
    if (isVendorAccountError(error)) this.attempt?.accountRefused(error);
    if (this.handedOn === 'answer') this.endBroken(error, reason, phase);
    else {
      this.#cancel(reason, error);
      this.owner.onAttemptFailed(error, failure ?? reason, isOfAnswer(error) ? this.head : null);
    }
  }

  /** Gives up a stream that ended before its first event. It is retried like a call whose connection broke. */
  giveUnbegun(error: GatewayError): void {
    const sentMs = performance.now() - this.call.sentAt;
    this.giveUp(error, {
      reason: 'truncated',
      detail: error.message,
      bytesSent: true,
      headSeen: true,
      sentMs,
    });
  }

  /** Ends the call after an unexpected exception, which affects no other call. */
  failByUs(fault: unknown): void {
    this.services.reportFault('upstream', fault, this.call);
    this.giveUp(asGatewayError(fault), null, 'gateway_fault');
  }

  /**
   * Ends a partly relayed answer whose upstream has failed: its connection broke, it took too long, or its bytes are no
   * valid answer.
   */
  endFailedUpstream(error: GatewayError): void {
    const { transform } = this;
    const passedError = transform?.passedError ?? null;
    // The whole answer had arrived, so the end of the connection says nothing about it.
    if (transform?.isComplete) this.endComplete(transform);
    else if (passedError !== null) this.endFailed(passedError);
    // The attempt has been counted as failed already (`RelayedAttempt.onFailure`).
    else this.endBroken(error);
  }

  /**
   * Ends an answer that has begun and will not be complete.
   * @param phase how far it had progressed
   */
  endBroken(error: GatewayError, reason = givenUpBy(error), phase = this.phase): void {
    this.#cancel(reason, error);
    // No error can be sent inside an answer that is no event stream. Cutting the connection shows that it is incomplete.
    if (phase.name === 'bytes') {
      this.call.error = error;
      this.call.exchange.abort();
    } else this.writeLastWords(phase, error);
    this.finish(outcomeOf(error), true);
  }

  /**
   * Tells the client of an event stream that the stream breaks off, and why.
   * @param phase how far the answer had progressed
   */
  writeLastWords(phase: Phase, error: GatewayError): void {
    const { call, transform, handedOn } = this;
    refuseStream(call, error, {
      number: transform?.nextNumber ?? 0,
      insideEvent: phase.name === 'events' && phase.runs.overlong,
      words: (event) => (handedOn === 'answer' ? (transform?.lastWords(error, event) ?? null) : null),
    });
  }

  /** Ends a stream in which its upstream has reported an error. The error was sent with what was passed on last. */
  endFailed(error: GatewayError): void {
    if (isVendorAccountError(error)) this.attempt?.accountRefused(error);
    this.#cancel(givenUpBy(error), error);
    this.call.error = error;
    endFailedStream(this.call);
    this.finish('upstream_error');
  }

  /** Ends a stream that has reached its protocol's own end, whether or not the upstream's connection has ended. */
  endComplete(transform: AnswerTransform): void {
    const { last } = transform.end();
    if (last !== null) this.call.exchange.write(last);
    if (transform.isCut) this.awaited?.cancel();
    // Nothing more of the upstream is passed on, so nothing has to wait for the client.
    this.flowing = true;
    this.endGood(transform);
  }

  /** Ends a good stream. Its last events (`waitingEnd`) are sent when what they promise is stored. */
  endGood({ waitingEnd }: AnswerTransform): void {
    if (waitingEnd !== null)
      this.whenKept(waitingEnd, (result) => this.finish(sendStreamEnd(this.call, result, waitingEnd)));
    else {
      this.call.exchange.end();
      this.finish('complete');
    }
  }

  /** @param send called with the bytes to send, or with the error if nothing may be sent */
  whenKept(end: WaitingEnd, send: (result: Buffer | GatewayError) => void): void {
    const { services, call, phase } = this;
    const behind = phase.name === 'events' && call.gatewayPath !== 'translated' ? phase : null;
    const keeping: Phase = { name: 'keeping', betweenEvents: end.isStream && !end.insideEvent, behind };
    this.phase = keeping;
    keepEnd(services, call, end, (result) => this.phase === keeping && send(result));
  }

  /** Stops reading the current attempt's answer. */
  #cancel(reason: GivenUpBy, error: GatewayError): void {
    if (this.attempt === null) this.awaited?.cancel();
    else this.attempt.cancelFor(reason, error);
  }
}

/**
 * Returns true for an error that the upstream's answer itself contains. Nothing of an error about the account is passed on.
 */
function isOfAnswer({ source, vendorAccountStatus }: GatewayError): boolean {
  return source === 'upstream' && vendorAccountStatus === null;
}
