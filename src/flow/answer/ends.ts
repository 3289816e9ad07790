import { performance } from 'node:perf_hooks';
import type { Wait } from '../../attempts/attempts.js';
import { givenUpBy } from '../../attempts/outcome.js';
import { type AttemptOwner, RelayedAttempt } from '../../attempts/relayed-attempt.js';
import { asGatewayError, type GatewayError, type GivenUpBy } from '../../errors.js';
import { Swept } from '../../http/sweep.js';
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
import { over, type Phase, waiting } from './phase.js';

/**
 * How an answer ends that is handed on by `Relay`, with what both keep of it. But for `giveUp` before anything of it has
 * left, each of these ends the call (`settle`):
 *
 * it is whole                                       `endGood`; of a stream at its protocol's end `endComplete`
 * an error event has passed, the upstream's or one that the translation made of it   `endFailed`
 * the upstream's connection broke, or took too long  `endFailedUpstream`: `endComplete` where all of it had come, `endFailed` where an error event had passed, else `endBroken`
 * a stream ended without its protocol's end         `endBroken`; where it is translated `endFailed`
 * it is of no use                                   `giveUp`: another target is asked; `endBroken` once some has left
 *
 * `endBroken` ends a stream with last words in the client's protocol, and cuts the connection of anything else. A fault of
 * ours ends in `failByUs` where the upstream's side has thrown, in `Relay.onOurFault` where the client's has.
 */
export abstract class AnswerEnds extends Swept {
  readonly services: Services;
  readonly call: RoutedCall;
  /** Hears of an attempt that failed while another may follow: the call's `Forwarding`. */
  readonly owner: AttemptOwner;
  /** Where the answer is to come from, to be cancelled or resumed: an attempt, a hedge of two, or a wait before the next. */
  awaited: RelayedAttempt | Hedge | Wait | null = null;
  /** Of the attempt that answers; null while there is none. */
  transform: AnswerTransform | null = null;
  /** Head of the upstream's answer. */
  head: ResponseHead | null = null;
  phase: Phase = waiting;
  /**
   * What has left for the client, or will with the next write: `head` is that of a stream, with keep-alives behind it.
   * Until some of the upstream's `answer` has, another target may be asked.
   */
  handedOn: 'nothing' | 'head' | 'answer' = 'nothing';
  /** The client takes what is written as fast as it comes. */
  flowing = true;
  /** Runs while the first event of an answer has a time of its own. */
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

  /** Leaves the sweep list: nothing of this call is due any more. */
  stopTimers(): void {
    clearTimeout(this.firstTokenTimer);
    this.services.sweepList.remove(this);
  }

  /**
   * The call is over.
   * @param isBroken its answer is not whole, and not because the client has left; an error answer has no usage in any case
   */
  settle(outcome: CallOutcome, isBroken = outcome === 'upstream_error'): void {
    const { services, call, awaited, transform } = this;
    this.phase = over;
    this.stopTimers();
    releaseBody(services, call, awaited, transform);
    if (awaited?.sentAt) noteUsage(call, transform, this.head, outcome, isBroken);
    this.awaited = null;
    this.transform = null;
    account(services, call, outcome);
    countUnread(services, call);
  }

  /** All of the upstream's answer has been handed on. */
  settleWhole({ status }: ResponseHead): void {
    this.settle(status >= 400 ? 'upstream_error' : 'complete');
  }

  /** Gives an answer up that cannot be used: another target may be asked while none of it was relayed. */
  giveUp(error: GatewayError, failure: UpstreamFailure | null = null, reason = givenUpBy(error)): void {
    const { phase } = this;
    this.phase = over;
    if (isVendorAccountError(error)) this.attempt?.accountRefused(error);
    if (this.handedOn === 'answer') this.endBroken(error, reason, phase);
    else {
      this.#cancel(reason, error);
      this.owner.onAttemptFailed(error, failure ?? reason, tellsItself(error) ? this.head : null);
    }
  }

  /** Gives up a stream that ended before its first event: it goes elsewhere as a call whose connection broke does. */
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

  /** A mistake of ours costs its own call and nothing else. */
  failByUs(fault: unknown): void {
    this.services.reportFault('upstream', fault, this.call);
    this.giveUp(asGatewayError(fault), null, 'gateway_fault');
  }

  /**
   * The upstream has failed in the middle of an answer of which some was relayed: its connection has broken, its time has run
   * out, or its bytes are no answer.
   */
  endFailedUpstream(error: GatewayError): void {
    const { transform } = this;
    const told = transform?.passedError ?? null;
    // All of the answer was there; how the connection ended says nothing about it.
    if (transform?.isComplete) this.endComplete(transform);
    else if (told !== null) this.endFailed(told);
    // The attempt has counted as failed already (`RelayedAttempt.onFailure`).
    else this.endBroken(error);
  }

  /**
   * Ends an answer that has begun, and will not come to its end.
   * @param phase how far it had come
   */
  endBroken(error: GatewayError, reason = givenUpBy(error), phase = this.phase): void {
    this.#cancel(reason, error);
    // Nothing can be said in an answer that is no event stream: a cut connection is the only honest end.
    if (phase.name === 'bytes') {
      this.call.error = error;
      this.call.exchange.abort();
    } else this.writeLastWords(phase, error);
    this.settle(outcomeOf(error), true);
  }

  /** Tells the client of an event stream that it breaks off, and why. @param phase how far the answer had come */
  writeLastWords(phase: Phase, error: GatewayError): void {
    const { call, transform, handedOn } = this;
    refuseStream(call, error, {
      number: transform?.nextNumber ?? 0,
      insideEvent: phase.name === 'events' && phase.runs.overlong,
      words: (event) => (handedOn === 'answer' ? (transform?.lastWords(error, event) ?? null) : null),
    });
  }

  /** Ends a stream whose upstream has told of an error in it: its words have left with what was passed last. */
  endFailed(error: GatewayError): void {
    if (isVendorAccountError(error)) this.attempt?.accountRefused(error);
    this.#cancel(givenUpBy(error), error);
    this.call.error = error;
    endFailedStream(this.call);
    this.settle('upstream_error');
  }

  /** Ends a stream that has come to its protocol's own end, whether or not the upstream's connection has. */
  endComplete(transform: AnswerTransform): void {
    const { last } = transform.end();
    if (last !== null) this.call.exchange.write(last);
    if (transform.isCut) this.awaited?.cancel();
    // Nothing of the upstream is passed on any more, so nothing has to wait for the client.
    this.flowing = true;
    this.endGood(transform);
  }

  /** Ends a good stream, whose last events (`waitingEnd`) leave once what they promise is stored. */
  endGood({ waitingEnd }: AnswerTransform): void {
    if (waitingEnd !== null)
      this.whenKept(waitingEnd, (result) => this.settle(sendStreamEnd(this.call, result, waitingEnd)));
    else {
      this.call.exchange.end();
      this.settle('complete');
    }
  }

  /** @param send hears what is to leave, or why nothing may */
  whenKept(end: WaitingEnd, send: (result: Buffer | GatewayError) => void): void {
    const { services, call, phase } = this;
    const behind = phase.name === 'events' && call.gatewayPath !== 'translated' ? phase : null;
    const keeping: Phase = { name: 'keeping', isStream: end.isStream, behind };
    this.phase = keeping;
    keepEnd(services, call, end, (result) => this.phase === keeping && send(result));
  }

  /** Nothing more is read of the present attempt's answer. */
  #cancel(reason: GivenUpBy, error: GatewayError): void {
    if (this.attempt === null) this.awaited?.cancel();
    else this.attempt.cancelFor(reason, error);
  }
}

/** Whether an error is what the upstream's answer itself says. Of one about our account nothing passes. */
function tellsItself({ source, vendorAccountStatus }: GatewayError): boolean {
  return source === 'upstream' && vendorAccountStatus === null;
}
