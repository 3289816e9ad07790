import { performance } from 'node:perf_hooks';
import { type AttemptAdapter, type AttemptPlan, Wait } from '../../attempts/attempts.js';
import { reportedStatus } from '../../attempts/error-answer.js';
import { reportsMissingEndpoint } from '../../attempts/lacking-endpoints.js';
import { type AttemptOwner, type JudgedErrorAnswer, RelayedAttempt } from '../../attempts/relayed-attempt.js';
import type { FailedAttempt } from '../../attempts/verdict.js';
import type { Target } from '../../config/types.js';
import type { ConversationRequest } from '../../conversation/request.js';
import { GatewayError, type GivenUpBy, guard, unrepeatable } from '../../errors.js';
import type { Endpoint, Translation } from '../../protocols/endpoint.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import type { ResponseHead, UpstreamFailure } from '../../upstream/types.js';
import { Relay } from '../answer/relay.js';
import { attemptDeadlines, type ForwardedCall, type ResolvedCall, type RoutedCall } from '../call.js';
import { keptBytes, setHeldBytes, takeAnswerMemory } from '../memory-budget.js';
import { noteFailed, noteGivenUp, noteReportedUsage } from '../record/consumption.js';
import { refusalOf } from '../refuse.js';
import { routeCall, setTarget } from '../resolve.js';
import { beginTranslatedMessage, sendSocketCall } from '../responses-socket/send.js';
import type { Services } from '../services.js';
import { fetchMedia, mediaToFetch, type RemotePart } from './fetch-media.js';
import { Hedge, mayHedge } from './hedge.js';
import {
  decodeCall,
  hasOtherForm,
  nativeBody,
  type Prepared,
  postAttempt,
  prepareNative,
  prepareTranslated,
  prepareUpload,
  writtenBytes,
} from './prepare.js';
import { answerJson, WaitingClient } from './waiting-client.js';

/** A translated body is in memory twice: as it arrived, and as it is written again. */
const translatedCopies = 2;

/** Changes what a target gets of a call that it takes without translation. */
type Adapt = (prepared: Prepared, target: Target) => Prepared;

/** Sends a validated call to its model's targets, or to some of them, one after the other until one answers. */
export function forward(
  services: Services,
  call: ResolvedCall,
  targets = call.model.targets,
  adapt: Adapt | null = null,
): void {
  const { endpoint } = call.route;
  if (endpoint === null) throw new Error('the route calls no model');
  const plan = routeCall(services, call, targets);
  const forwarding = new Forwarding(services, setTarget(call, plan.target), endpoint, plan);
  forwarding.adapt = adapt;
  call.forwarding = forwarding;
  plan.start(forwarding);
}

/**
 * Sends a call to a target, and to the next one if that fails. `AttemptPlan` chooses the targets, the relay passes the
 * answer on, and `Hedge` manages a second attempt beside the first.
 */
export class Forwarding implements AttemptAdapter, AttemptOwner, ForwardedCall {
  readonly services: Services;
  readonly call: RoutedCall;
  readonly endpoint: Endpoint;
  readonly plan: AttemptPlan;
  /** Listens to the client's side from the start. */
  readonly relay: Relay;
  /** Null if the target gets what was prepared. */
  adapt: Adapt | null = null;
  /** The current attempt, or the last one. */
  #attempt: RelayedAttempt | null = null;
  /** Two attempts, one of which may have been chosen. */
  #hedge: Hedge | null = null;
  /** The call has waited for something before its first attempt. */
  #isLate = false;

  constructor(services: Services, call: RoutedCall, endpoint: Endpoint, plan: AttemptPlan) {
    this.services = services;
    this.call = call;
    this.endpoint = endpoint;
    this.plan = plan;
    this.relay = new Relay(services, call, this);
  }

  get transform(): AnswerTransform | null {
    const attempt = this.#attempt;
    return attempt !== null && (attempt.isAnswered || attempt.isWritten) ? attempt.transform : null;
  }

  get mayMoveOn(): boolean {
    return this.#hedge?.isOfTwo === true || this.plan.next !== null;
  }

  attempt(): void {
    this.call.target = this.plan.target;
    try {
      const prepared = this.#prepare();
      if (prepared !== null)
        this.#send(this.adapt === null ? prepared : this.adapt(prepared, this.plan.target));
    } catch (fault) {
      // Nothing was sent if its head could not be written.
      this.#attempt?.withdraw();
      throw fault;
    }
  }

  /** @returns null if the gateway answers itself, or if media are fetched first */
  #prepare(): Prepared | null {
    const { call, endpoint } = this;
    const { target, apiKey } = this.plan;
    if (call.upload !== null) return prepareUpload(call, call.upload, endpoint, target);
    if (!this.#isNative(target)) return this.#translate(target, endpoint.translation);
    if (hasOtherForm(endpoint, target)) this.#holdTwice();
    return prepareNative(this.services, call, { endpoint, target, apiKey });
  }

  #translate(target: Target, translation: Translation | null): Prepared | null {
    const { call } = this;
    if (translation === null) throw new Error(`${this.endpoint.protocol} cannot be translated`);
    call.gatewayPath = 'translated';
    const answer = call.socketCall === null ? null : beginTranslatedMessage(call, call.socketCall);
    if (answer !== null) return this.#answerJson(answer);
    this.#holdTwice();
    const request = decodeCall(call, translation);
    if (translation.answerHere !== null) return this.#answerJson(translation.answerHere(request));
    const wanted = mediaToFetch(request, target, translation);
    if (wanted.length === 0) return prepareTranslated(call, translation, target, request);
    this.#fetchMedia(translation, request, wanted);
    return null;
  }

  /**
   * The written body is about as long as the original. Memory for it is taken before the work, which is in vain if there is
   * none.
   */
  #holdTwice(): void {
    setHeldBytes(this.services, this.call, translatedCopies * (this.call.body?.length ?? 0));
  }

  #answerJson(json: string): null {
    const { services, call } = this;
    this.relay.stopTimers();
    call.exchange.listener = new WaitingClient(services, call);
    answerJson(services, call, 200, json);
    return null;
  }

  #fetchMedia(translation: Translation, request: ConversationRequest, wanted: readonly RemotePart[]): void {
    const { call } = this;
    const { target } = this.plan;
    const wait = new Wait();
    fetchMedia(this.services, call, { request, target, wanted, waiting: wait })
      .then((fetched) => {
        if (!call.accounted) this.#send(prepareTranslated(call, translation, target, fetched));
      })
      .catch((fault: unknown) => {
        if (call.accounted) return;
        this.#attempt?.withdraw();
        this.plan.cannot(fault);
      })
      .catch((fault: unknown) => call.onFault('promise', fault));
    this.standBy(wait);
  }

  /**
   * Makes the relay wait for something other than its own attempt at an upstream. Its client gets keep-alives until then.
   * Code that answers in place of the relay calls `stopTimers` of it.
   * @param wait cancelled when the client has disconnected
   */
  standBy(wait: Wait): void {
    this.#isLate = true;
    this.relay.reset(wait);
  }

  #send(prepared: Prepared): void {
    const { services, call, relay } = this;
    const { transform, gatewayPath, leftOut } = prepared;
    call.gatewayPath = gatewayPath;
    call.leftOut = leftOut;
    // The written body is in memory beside the original.
    if (gatewayPath === 'translated')
      setHeldBytes(services, call, (call.body?.length ?? 0) + keptBytes(transform) + writtenBytes(prepared));
    const deadlines = attemptDeadlines(call, this.#isLate);
    const { hedgeMs } = call.model;
    const isHedged =
      hedgeMs !== null &&
      mayHedge(call, this.endpoint) &&
      (gatewayPath === 'translated' || !prepared.hasEffects(prepared.body));
    const attempt = new RelayedAttempt(services, this.plan, this, relay, prepared);
    this.#attempt = attempt;
    relay.reset(attempt);
    const { socketCall } = call;
    attempt.exchange =
      socketCall === null
        ? postAttempt(services, call, attempt, prepared, deadlines)
        : sendSocketCall(services, call, {
            socketCall,
            attempt,
            prepared,
            deadlines,
            answerJson: (json) => this.#answerJson(json),
          });
    // The attempt may have failed already.
    if (relay.awaited !== attempt || call.accounted) return;
    this.awaitFirstToken(attempt.target);
    if (isHedged) this.#hedge = new Hedge(this, attempt, hedgeMs);
  }

  /** Whether the target gets the call without translation. */
  #isNative(target: Target): boolean {
    const { endpoint } = this;
    if (!target.native.has(endpoint.protocol)) return false;
    return !endpoint.mayLack || !this.services.lacking.has(target, endpoint, performance.now());
  }

  /** Whether the call can be expressed for a target. */
  #canServe(target: Target): boolean {
    if (this.#isNative(target)) return true;
    const { translation } = this.endpoint;
    if (translation === null) return false;
    try {
      prepareTranslated(this.call, translation, target, decodeCall(this.call, translation));
      return true;
    } catch (fault) {
      if (fault instanceof GatewayError) return false;
      throw fault;
    }
  }

  switchToOther(attempt: RelayedAttempt): boolean {
    return this.#hedge?.switchToOther(attempt) ?? false;
  }

  adopt(attempt: RelayedAttempt): void {
    this.plan.stayWith(attempt);
    this.#attempt = attempt;
    this.call.target = attempt.target;
    this.call.gatewayPath = attempt.gatewayPath;
    this.call.leftOut = attempt.leftOut;
    this.relay.reset(attempt);
  }

  tryHold(bytes: number): boolean {
    return this.call.accounted || takeAnswerMemory(this.services, this.call, bytes) === null;
  }

  awaitFirstToken({ firstTokenMs }: Target): void {
    const { call, relay } = this;
    if (firstTokenMs === null || call.accounted || !call.validated?.stream) return;
    relay.stopFirstTokenTimer();
    const late = guard('timer', call, () => {
      if (relay.firstTokenTimer === timer) this.#onSilent();
    });
    // After a blocked event loop, the first event may be waiting. It is read before the immediate runs, unless compressed.
    const timer = setTimeout(() => setImmediate(late), firstTokenMs);
    relay.firstTokenTimer = timer;
  }

  /** Called when the attempt has sent nothing of its answer in time. The attempt ends if another target can be tried. */
  #onSilent(): void {
    const attempt = this.#attempt;
    if (attempt === null) return;
    if (this.switchToOther(attempt)) {
      noteGivenUp(this.call, attempt);
      attempt.failed('first_token_timeout', false);
      attempt.cancel();
    } else if (
      this.relay.isSilent &&
      isReplayable(this.call) &&
      !this.#hasEffects &&
      this.plan.hasNext((target) => this.#canServe(target))
    ) {
      noteGivenUp(this.call, attempt);
      this.relay.giveUp(new GatewayError('upstream_timeout'), null, 'first_token_timeout');
    }
  }

  onErrorAnswer(attempt: RelayedAttempt, { head, body, status, error }: JudgedErrorAnswer): void {
    if (this.switchToOther(attempt)) {
      attempt.discard(head);
      return;
    }
    if (this.#noteIfLacking(attempt.target, status, body)) {
      attempt.discard(head);
      this.#isLate = true;
      this.plan.attemptAgain();
      return;
    }
    const sentMs = performance.now() - attempt.sentAt;
    if (!this.#planNext({ reason: status, bytesSent: true, sentMs })) return;
    attempt.discard(head);
    this.#goOn(error);
  }

  /**
   * Remembers a target whose error answer says that it lacks this endpoint of its protocol.
   * @returns whether it lacks the endpoint
   */
  #noteIfLacking(target: Target, status: number, body: Buffer): boolean {
    const { endpoint, call } = this;
    if (!endpoint.mayLack || call.gatewayPath === 'translated' || !call.exchange.alive) return false;
    const { model } = target;
    const path = endpoint.upstreamPath(model, false);
    const isLacking = reportsMissingEndpoint(status, body, { model, path, request: call.body });
    if (isLacking) this.services.lacking.note(target, endpoint, performance.now());
    return isLacking;
  }

  onAttemptFailed(error: GatewayError, cause: UpstreamFailure | GivenUpBy, head: ResponseHead | null): void {
    const isGivenUp = typeof cause === 'string';
    const { reason, bytesSent, sentMs } = isGivenUp ? { reason: cause, bytesSent: true, sentMs: 0 } : cause;
    const status = error.vendorAccountStatus ?? (isGivenUp ? reportedStatus(error) : null);
    if (this.#planNext({ reason: status ?? reason, bytesSent, sentMs })) {
      this.#goOn(error);
      return;
    }
    // An upstream that is silent until its deadline has read the request, as one that is given up.
    if (reason === 'first_byte_timeout' && this.#attempt !== null) noteGivenUp(this.call, this.#attempt);
    else noteReportedUsage(this.call, this.#attempt);
    this.relay.refuse(status === null && bytesSent && this.#hasEffects ? unrepeatable(error) : error, head);
  }

  /** A repetition at the current target would make or store something twice. */
  get #hasEffects(): boolean {
    const { call, endpoint } = this;
    return call.gatewayPath !== 'translated' && endpoint.hasEffects(nativeBody(call, endpoint));
  }

  /** Plans an attempt after one that failed. @returns whether there is one, which `#goOn` then begins */
  #planNext(attempt: Pick<FailedAttempt, 'reason' | 'bytesSent' | 'sentMs'>): boolean {
    const { call, plan } = this;
    if (!call.exchange.alive) return false;
    return plan.planNext({ ...attempt, replayable: isReplayable(call), hasEffects: this.#hasEffects });
  }

  #goOn(failure: GatewayError): void {
    if (this.#attempt !== null) noteFailed(this.call, this.#attempt);
    const backoff = this.plan.beginPlanned(failure);
    if (backoff !== null) this.relay.reset(backoff);
  }

  onNoneLeft(thrown: unknown): void {
    this.relay.refuse(refusalOf(this.services, this.call, 'request', thrown), null);
  }

  fail(error: GatewayError): void {
    this.#attempt?.withdraw();
    this.relay.awaited?.cancel();
    this.relay.refuse(error, null);
  }
}

function isReplayable({ upload, body }: RoutedCall): boolean {
  return upload?.canReplay ?? body !== null;
}
