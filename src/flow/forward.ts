import { performance } from 'node:perf_hooks';
import { type Asker, type AttemptOwner, type Attempts, RelayedAttempt } from '../attempts/attempts.js';
import { toldStatus } from '../attempts/error-answer.js';
import { Hedge, type HedgedAttempt } from '../attempts/hedge.js';
import { saysItLacks } from '../attempts/lacking-endpoints.js';
import type { FailedAttempt } from '../attempts/verdict.js';
import type { Target } from '../config/types.js';
import type { ConversationRequest } from '../conversation/request.js';
import { GatewayError, type GivenUpBy, guard, unrepeatable } from '../errors.js';
import type { Endpoint, Translation } from '../protocols/endpoint.js';
import {
  isVendorAccountError,
  type VendorAccountError,
} from '../protocols/error-formats/vendor-account-error.js';
import { warmUpAnswer } from '../protocols/responses/socket-message.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
} from '../upstream/client.js';
import { account } from './account.js';
import { ownLines, timingLine } from './answer-lines.js';
import { answerId, attemptDeadlines, deadlinesLeft, type ResolvedCall, type RoutedCall } from './call.js';
import { noteAttempt, noteGivenUp } from './consumption.js';
import { fetchedCopies, fetchMedia, mediaToFetch, type RemotePart } from './fetch-media.js';
import { HeldStream, mayHedge, prepareHedge } from './hedge-call.js';
import { keepMemory, keptBytes, takeAnswerMemory, takeMemory } from './memory-budget.js';
import {
  decodeCall,
  hasOtherForm,
  nativeBody,
  type Prepared,
  prepareNative,
  prepareTranslated,
  prepareUpload,
  writtenBytes,
} from './prepare.js';
import { refuse } from './refuse.js';
import { Relay } from './relay.js';
import { aimAt, routeCall } from './resolve.js';
import type { SocketCall } from './responses-socket/upstream-session.js';
import type { Services } from './services.js';
import { socketRequest, upstreamHead } from './upstream-head.js';

/** A body is in memory as it came, and as it is written anew. */
const translatedCopies = 2;
const atPrevious = { param: 'previous_response_id' };

/** A call on its way. */
export interface Sending {
  /** Ends it with an error of its own side: the rest of its body will not come. */
  abandon(fault: unknown): void;
}

/** Sends a validated call to its model's targets, one after the other until one answers. */
export function forward(
  services: Services,
  call: ResolvedCall,
  endpoint: Endpoint,
  targets: readonly Target[],
): Sending {
  const attempts = routeCall(services, call, targets);
  const forwarding = new Forwarding(services, aimAt(call, attempts.target), endpoint, attempts);
  call.answering = forwarding;
  attempts.start(forwarding);
  return forwarding;
}

/** Relays the answer of the target that gives one. */
export class Forwarding implements Asker, AttemptOwner, Sending {
  readonly #services: Services;
  readonly #call: RoutedCall;
  readonly #endpoint: Endpoint;
  readonly #attempts: Attempts;
  #relay: Relay | null = null;
  #attempt: RelayedAttempt | null = null;
  /** Of the attempt. */
  #transform: AnswerTransform | null = null;
  /** The target has said that it does not have the endpoint. */
  #isLacking = false;
  /** Time went by before the first attempt. */
  #isLate = false;
  /** While a second target may be asked beside the first, or is. */
  #hedge: Hedge | null = null;
  /** The attempt at that one, until it answers. */
  #second: RelayedAttempt | null = null;

  constructor(services: Services, call: RoutedCall, endpoint: Endpoint, attempts: Attempts) {
    this.#services = services;
    this.#call = call;
    this.#endpoint = endpoint;
    this.#attempts = attempts;
  }

  /** Of the present attempt, once that was sent. */
  get transform(): AnswerTransform | null {
    return this.#attempt?.sentAt ? this.#transform : null;
  }

  get hasWholeAnswer(): boolean {
    return this.#call.accounted || (this.#transform?.isComplete ?? false);
  }

  get toldFailure(): GatewayError | null {
    return this.#transform?.passedError ?? null;
  }

  passOver(attempt: RelayedAttempt, status: number, body: Buffer): boolean {
    if (this.leaveToOther(attempt)) return true;
    if (this.#noteIfLacking(attempt.target, status, body)) return true;
    return this.#planNext({
      reason: status,
      bytesSent: true,
      replayable: this.#isReplayable,
      hasEffects: this.#hasEffects,
      sentMs: performance.now() - attempt.sentAt,
    });
  }

  onPassedOver(error: GatewayError): void {
    if (this.#isLacking) {
      this.#isLacking = false;
      this.#isLate = true;
      this.#attempts.askAgain();
    } else this.#goOn(error);
  }

  /** Remembers a target whose error answer says that it does not have this endpoint of its protocol. @returns whether it does */
  #noteIfLacking(target: Target, status: number, body: Buffer): boolean {
    const endpoint = this.#endpoint;
    if (!endpoint.mayLack || this.#call.gatewayPath === 'translated' || !this.#call.exchange.alive)
      return false;
    const { model } = target;
    const path = endpoint.upstreamPath(model, false);
    this.#isLacking = saysItLacks(status, body, { model, path, request: this.#call.body });
    if (this.#isLacking) this.#services.lacking.note(target, endpoint, performance.now());
    return this.#isLacking;
  }

  /** Whether the target gets the call as it came. */
  #isNative(target: Target): boolean {
    if (!target.native.has(this.#endpoint.protocol)) return false;
    return !this.#endpoint.mayLack || !this.#services.lacking.has(target, this.#endpoint, performance.now());
  }

  onVendorAccountRefused(error: VendorAccountError): void {
    this.#attempt?.endedAs(error.vendorAccountStatus);
    this.#attempt?.report(error);
  }

  onGivenUp(reason: GivenUpBy, error: GatewayError): void {
    if (reason === 'first_token_timeout') this.#noteGivenUp(this.#attempt, this.#transform);
    if (reason === 'unusable_answer') this.#attempt?.unusable(error);
    else this.#attempt?.failed(reason, true);
  }

  get #isReplayable(): boolean {
    return this.#call.upload?.canReplay ?? this.#call.body !== null;
  }

  /** Asked again, the present target would make or keep it twice. */
  get #hasEffects(): boolean {
    const { gatewayPath } = this.#call;
    return gatewayPath !== 'translated' && this.#endpoint.hasEffects(nativeBody(this.#call, this.#endpoint));
  }

  /** Plans an attempt to follow one that failed. @returns whether there is one: then `#goOn` begins it. */
  #planNext(attempt: FailedAttempt): boolean {
    return this.#call.exchange.alive && this.#attempts.planNext(attempt);
  }

  #goOn(failure: GatewayError): void {
    this.#noteFailed(this.#attempt);
    const backoff = this.#attempts.beginPlanned(failure);
    if (backoff !== null) this.#relay?.reset(null, backoff);
  }

  tryHold(bytes: number): boolean {
    if (this.#call.accounted) return true;
    try {
      takeAnswerMemory(this.#services, this.#call, bytes);
      return true;
    } catch (fault) {
      if (fault instanceof GatewayError) return false;
      throw fault;
    }
  }

  onTaken(attempt: RelayedAttempt): void {
    if (this.#call.validated?.stream !== true) this.#choose(attempt);
  }

  onStreamBegun(attempt: RelayedAttempt): void {
    this.#choose(attempt);
  }

  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean {
    if (!this.leaveToOther(attempt)) return false;
    if (error === null) attempt.leave();
    else attempt.unusable(error);
    if (isVendorAccountError(error)) attempt.report(error);
    attempt.cancel();
    return true;
  }

  onClientLeft(): void {
    const other = this.#hedge?.hindmost ?? null;
    if (other !== null && this.giveUpForOther(other.attempt, null))
      this.#noteGivenUp(other.attempt, other.transform);
  }

  #choose(attempt: RelayedAttempt): void {
    if (attempt === this.#second) {
      this.#second = null;
      this.#services.recorder.count('gateway_hedges_total', 1, this.#call.model.name, 'won');
    }
    const hedge = this.#hedge;
    if (hedge === null) return;
    this.#hedge = null;
    const other = hedge.without(attempt);
    if (other !== null) this.#noteGivenUp(other.attempt, other.transform);
    this.#adopt(hedge.answeredBy(attempt));
  }

  leaveToOther(attempt: RelayedAttempt): boolean {
    const hedge = this.#hedge;
    if (hedge === null) return false;
    this.#hedge = null;
    const other = hedge.without(attempt);
    if (other !== null) {
      this.#noteFailed(attempt);
      this.#adopt(other);
      this.#awaitFirstToken(other.attempt.target);
    }
    // No second one was sent: this one's answer may be handed on, and waits for the client by itself from now on.
    else if (this.#relay !== null) this.#relay.upstream = attempt;
    return other !== null;
  }

  /** An attempt whose place another one takes. */
  #noteFailed(attempt: RelayedAttempt | null): void {
    if (attempt !== null && attempt.sentAt > 0) noteAttempt(this.#call, attempt, null);
  }

  /** An attempt that is cancelled by us has had its input read, and nobody says what it came to. */
  #noteGivenUp(attempt: RelayedAttempt | null, transform: AnswerTransform | null): void {
    if (attempt !== null && attempt.sentAt > 0 && !attempt.isErrorComing)
      noteGivenUp(this.#call, attempt, transform);
  }

  /** What becomes of an attempt is what becomes of the call from now on. */
  #adopt({ attempt, transform, gatewayPath, leftOut }: HedgedAttempt): void {
    this.#attempts.stayWith(attempt);
    this.#attempt = attempt;
    this.#transform = transform;
    this.#call.target = attempt.target;
    this.#call.gatewayPath = gatewayPath;
    this.#call.leftOut = leftOut;
    this.#relay?.reset(transform, attempt);
  }

  /** Gets ready to ask a second target as well when the first takes too long. */
  #startHedge(first: HedgedAttempt): void {
    const { hedgeMs } = this.#call.model;
    this.#services.hedges.earn(this.#call.model);
    this.#hedge = new Hedge(
      first,
      hedgeMs ?? 0,
      guard('timer', this.#call, () => this.#beginSecond(), null),
    );
    if (this.#relay !== null) this.#relay.upstream = this.#hedge;
  }

  /** @param isHedged there may be another one beside it */
  #newAttempt(relay: Relay, transform: AnswerTransform, isHedged: boolean): RelayedAttempt {
    if (!isHedged || this.#call.validated?.stream !== true)
      return new RelayedAttempt(this.#services, this.#attempts, this, relay);
    const held = new HeldStream(this, relay, transform);
    const attempt = new RelayedAttempt(this.#services, this.#attempts, this, held);
    held.attempt = attempt;
    return attempt;
  }

  #beginSecond(): HedgedAttempt | null {
    const call = this.#call;
    const relay = this.#relay;
    const { hedges } = this.#services;
    const { next } = this.#attempts;
    if (relay === null || !hedges.isFree(call.model) || next === null) return null;
    let attempt: RelayedAttempt | null = null;
    try {
      const prepared = prepareHedge(this.#services, call, this.#endpoint, next);
      // Only what is sent moves the call on: it may fail over to a target that was not asked as a second one.
      if (prepared === null) return null;
      this.#attempts.goTo(next);
      const { target, key } = this.#attempts;
      attempt = this.#newAttempt(relay, prepared.transform, true);
      this.#second = attempt;
      attempt.exchange = this.#post(target, key, prepared, deadlinesLeft(call), attempt);
      call.retries++;
      hedges.spend(call.model);
      this.#services.recorder.count('gateway_hedges_total', 1, this.#call.model.name, 'sent');
      const { transform, gatewayPath, leftOut } = prepared;
      return { attempt, transform, gatewayPath, leftOut };
    } catch (fault) {
      // The first is still under way.
      attempt?.leave();
      if (!(fault instanceof GatewayError)) this.#services.reportFault('timer', fault, call);
      return null;
    }
  }

  ask(): void {
    const { target, key } = this.#attempts;
    const endpoint = this.#endpoint;
    const { upload } = this.#call;
    this.#call.target = target;
    try {
      if (upload !== null) this.#send(target, prepareUpload(this.#call, upload, endpoint, target));
      else if (this.#isNative(target)) {
        if (hasOtherForm(endpoint, target)) this.#holdAnew();
        this.#send(target, prepareNative(this.#services, this.#call, { endpoint, target, key }));
      } else this.#translate(target, endpoint.translation);
    } catch (fault) {
      // Nothing was sent where its head could not be written.
      this.#attempt?.leave();
      throw fault;
    }
  }

  onNoneLeft(fault: unknown): void {
    this.#end(fault, null);
  }

  #translate(target: Target, translation: Translation | null): void {
    const call = this.#call;
    if (translation === null) throw new Error(`${this.#endpoint.protocol} cannot be translated`);
    call.gatewayPath = 'translated';
    if (call.socketCall !== null) {
      call.socketCall.madeBy = 'gateway';
      if (call.socketCall.previousId !== null && call.recalled?.turn == null)
        throw new GatewayError('previous_response_not_found', undefined, atPrevious);
      if (call.socketCall.isWarmUp) {
        this.#warmUp();
        return;
      }
    }
    this.#holdAnew();
    const request = decodeCall(call, translation);
    if (translation.answerHere !== null) {
      this.#answerHere(translation.answerHere(request));
      return;
    }
    const wanted = mediaToFetch(request, target, translation);
    if (wanted.length > 0) this.#fetchMedia(target, translation, request, wanted);
    else this.#send(target, prepareTranslated(call, translation, target, request));
  }

  #fetchMedia(
    target: Target,
    translation: Translation,
    request: ConversationRequest,
    wanted: readonly RemotePart[],
  ): void {
    const call = this.#call;
    const body = call.body?.length ?? 0;
    let held = 0;
    const hold = (bytes: number): void => {
      held = bytes;
      this.#holdAll(body + bytes);
    };
    const waiting = { cancel: () => {} };
    const cannot = (fault: unknown): void => {
      this.#attempt?.leave();
      this.#attempts.cannot(fault);
    };
    const goOn = (fetched: ConversationRequest): void => {
      if (call.accounted) return;
      try {
        // They will stand in the text of the body that is written, and in its bytes.
        this.#holdAll(body + fetchedCopies * held);
        this.#send(target, prepareTranslated(call, translation, target, fetched));
      } catch (fault) {
        cannot(fault);
      }
    };
    fetchMedia(this.#services, call, { request, target, wanted, hold, waiting })
      .then(goOn, (fault: unknown) => {
        if (call.accounted) return;
        this.#holdAll(body);
        cannot(fault);
      })
      .catch((fault: unknown) => call.onFault('promise', fault));
    this.standBy(() => waiting.cancel());
  }

  /**
   * Has the relay wait for what is not its own attempt at an upstream: until then its client gets keep-alives.
   * @param cancel ends that, once the client has left
   * @returns the relay, which whoever answers in its place tells to `leave`
   */
  standBy(cancel: () => void): Relay {
    this.#isLate = true;
    this.#relay ??= new Relay(this.#services, this.#call, this);
    // In the place of the request to an upstream.
    this.#relay.reset(null, { resume: () => {}, cancel, sentAt: 0, bodyReleased: false });
    return this.#relay;
  }

  #answerHere(json: string): void {
    const call = this.#call;
    this.#relay?.leave();
    call.exchange.respond(200, ownLines(call) + timingLine(call), json);
    account(this.#services, call, 'complete');
  }

  #send(target: Target, prepared: Prepared): void {
    const call = this.#call;
    call.gatewayPath = prepared.gatewayPath;
    call.leftOut = prepared.leftOut;
    // The body that was written stands in memory beside the one that came.
    if (prepared.gatewayPath === 'translated')
      this.#holdAll((call.body?.length ?? 0) + keptBytes(prepared.transform) + writtenBytes(prepared));
    this.#relay ??= new Relay(this.#services, call, this);
    const relay = this.#relay;
    relay.reset(prepared.transform, null);
    this.#transform = prepared.transform;
    const deadlines = attemptDeadlines(call, this.#isLate);
    const isHedged =
      call.model.hedgeMs !== null &&
      mayHedge(call, this.#endpoint) &&
      (prepared.gatewayPath === 'translated' || !prepared.hasEffects(prepared.body));
    const attempt = this.#newAttempt(relay, prepared.transform, isHedged);
    this.#attempt = attempt;
    relay.upstream = attempt;
    attempt.exchange =
      call.socketCall === null
        ? this.#post(target, this.#attempts.key, prepared, deadlines, attempt)
        : this.#sendOverSocket(call.socketCall, target, prepared, deadlines, attempt);
    if (attempt === this.#attempt) this.#awaitFirstToken(target);
    const { transform, gatewayPath, leftOut } = prepared;
    if (isHedged) this.#startHedge({ attempt, transform, gatewayPath, leftOut });
  }

  #awaitFirstToken({ firstTokenMs }: Target): void {
    const call = this.#call;
    const relay = this.#relay;
    if (firstTokenMs === null || relay === null || call.accounted || !call.validated?.stream) return;
    clearTimeout(relay.firstTokenTimer);
    relay.firstTokenTimer = setTimeout(
      guard('timer', call, () => this.#onSilent()),
      firstTokenMs,
    );
  }

  /** The attempt has sent nothing of its answer in time: as long as another target can be asked, that is its end. */
  #onSilent(): void {
    const attempt = this.#attempt;
    const transform = this.#transform;
    if (attempt !== null && this.leaveToOther(attempt)) {
      this.#noteGivenUp(attempt, transform);
      attempt.failed('first_token_timeout', false);
      attempt.cancel();
    } else if (
      this.#isReplayable &&
      !this.#hasEffects &&
      this.#attempts.hasNext((target) => this.#canAsk(target))
    )
      this.#relay?.giveUpSilent();
  }

  /** Whether a target could be told what is asked. */
  #canAsk(target: Target): boolean {
    if (this.#isNative(target)) return true;
    const { translation } = this.#endpoint;
    if (translation === null) return false;
    try {
      prepareTranslated(this.#call, translation, target, decodeCall(this.#call, translation));
      return true;
    } catch (fault) {
      if (fault instanceof GatewayError) return false;
      throw fault;
    }
  }

  #post(
    target: Target,
    key: number,
    prepared: Prepared,
    deadlines: Deadlines,
    handler: UpstreamHandler,
  ): UpstreamExchange {
    return this.#services.upstream.send(
      target.upstream.origin,
      {
        method: 'POST',
        head: upstreamHead(this.#call, target, key, prepared),
        body: prepared.body,
        source: prepared.source,
        hasEffects: prepared.hasEffects,
      },
      deadlines,
      handler,
    );
  }

  /** @returns null when the gateway itself has answered */
  #sendOverSocket(
    socketCall: SocketCall,
    target: Target,
    prepared: Prepared,
    deadlines: Deadlines,
    handler: UpstreamHandler,
  ): UpstreamExchange | null {
    const { key } = this.#attempts;
    const otherwise = (): UpstreamExchange | null => {
      socketCall.madeBy = prepared.gatewayPath === 'translated' ? 'gateway' : 'request';
      if (!socketCall.isWarmUp) return this.#post(target, key, prepared, deadlines, handler);
      socketCall.madeBy = 'gateway';
      this.#attempt?.leave();
      this.#warmUp();
      return null;
    };
    if (!socketCall.upstreamSession.takes(target, prepared.gatewayPath === 'translated')) return otherwise();
    socketCall.madeBy = 'session';
    const { isWarmUp } = socketCall;
    const { upstreamPath, protocol, body, hasEffects } = prepared;
    const vendor = this.#call.exchange.head;
    return socketCall.upstreamSession.send({
      target,
      key,
      body,
      hasEffects,
      socketRequest: () => socketRequest(this.#call, target, upstreamPath, { protocol, vendor, key }),
      deadlines,
      handler,
      isWarmUp,
      otherwise,
    });
  }

  /** The gateway remembers what the message held, where no upstream can. */
  #warmUp(): void {
    const call = this.#call;
    this.#answerHere(warmUpAnswer(call.model.name, answerId(call), Math.floor(Date.now() / 1000)));
  }

  /** What is written in a body's place is about as long: that there is no room for it is better known before the work. */
  #holdAnew(): void {
    this.#holdAll(translatedCopies * (this.#call.body?.length ?? 0));
  }

  /** The call is about to hold so many bytes in all. */
  #holdAll(bytes: number): void {
    const call = this.#call;
    if (bytes > call.heldBytes) takeMemory(this.#services, call, bytes - call.heldBytes);
    else keepMemory(this.#services, call, bytes);
  }

  abandon(fault: unknown): void {
    this.#attempt?.leave();
    this.#relay?.upstream?.cancel();
    this.#end(fault, null);
  }

  onErrorAnswer(error: GatewayError, head: ResponseHead | null): void {
    this.#end(error, head);
  }

  #end(fault: unknown, head: ResponseHead | null): void {
    if (this.#relay === null) refuse(this.#services, this.#call, fault);
    else this.#relay.refuse(fault, head);
  }

  onAttemptFailed(error: GatewayError, cause: UpstreamFailure | GivenUpBy, head: ResponseHead | null): void {
    const isGivenUp = typeof cause === 'string';
    const { reason, bytesSent, sentMs } = isGivenUp ? { reason: cause, bytesSent: true, sentMs: 0 } : cause;
    const status = error.vendorAccountStatus ?? (isGivenUp ? toldStatus(error) : null);
    const hasEffects = this.#hasEffects;
    const failed = {
      reason: status ?? reason,
      bytesSent,
      sentMs,
      replayable: this.#isReplayable,
      hasEffects,
    };
    if (this.#planNext(failed)) this.#goOn(error);
    else this.#end(status === null && bytesSent && hasEffects ? unrepeatable(error) : error, head);
  }
}
