import type { Target } from '../config/types.js';
import type { ConversationRequest } from '../conversation/request.js';
import { GatewayError } from '../errors.js';
import type { Endpoint, Translation } from '../protocols/protocol.js';
import { warmUpAnswer } from '../protocols/responses/turn.js';
import { verdict } from '../routing/verdict.js';
import type { Passage } from '../stream/passage.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamHandler,
} from '../upstream/client.js';
import { account } from './account.js';
import { reserveBody, shrinkReservation } from './admit.js';
import { ownLines } from './answer.js';
import { Attempt, type AttemptJudge, type AttemptOwner } from './attempt.js';
import type { Call } from './call.js';
import { fetchMedia, remoteMedia } from './fetch-media.js';
import { decodeCall, type Prepared, prepareNative, prepareTranslated, prepareUpload } from './prepare.js';
import { refuse } from './refuse.js';
import { Relay } from './relay.js';
import { routeCall } from './route.js';
import type { Services } from './services.js';
import { timingLine } from './timing.js';
import type { TurnCall } from './turns/turn-call.js';
import { upstreamHead } from './upstream-head.js';

/** Bytes of all media of a call that are fetched by URL. */
const mostFetched = 20 * 1024 * 1024;
/** They are in memory as they come, in base64, and in the text and the bytes of the body that is made of them. */
const fetchCopies = 4;
/** One call may not take more than this part of what a worker may hold. */
const fetchShare = 8;

/** A call on its way. */
export interface Sending {
  /** Ends it with an error of its own side: the rest of its body will not come. */
  abandon(fault: unknown): void;
}

/** Sends a validated call to its model's targets, one after the other until one answers. */
export function forward(
  services: Services,
  call: Call,
  endpoint: Endpoint,
  targets: readonly Target[],
): Sending {
  const chosen = routeCall(services, call, targets);
  const ordered = call.turn === null ? chosen : call.turn.lane.arrange(chosen);
  const forwarding = new Forwarding(services, call, endpoint, ordered);
  forwarding.next();
  return forwarding;
}

/** The attempts of one call. */
class Forwarding implements AttemptOwner, AttemptJudge, Sending {
  readonly #services: Services;
  readonly #call: Call;
  readonly #endpoint: Endpoint;
  readonly #targets: readonly Target[];
  #index = 0;
  #relay: Relay | null = null;
  #attempt: Attempt | null = null;
  /** Of the attempt. */
  #passage: Passage | null = null;
  /** Why an attempt before failed: a target that then cannot be asked at all is not the caller's mistake. */
  #failure: GatewayError | null = null;
  /** Time went by before the first attempt. */
  #isLate = false;

  constructor(services: Services, call: Call, endpoint: Endpoint, targets: readonly Target[]) {
    this.#services = services;
    this.#call = call;
    this.#endpoint = endpoint;
    this.#targets = targets;
  }

  get isWanted(): boolean {
    return this.#call.exchange.alive;
  }

  get isServed(): boolean {
    return this.#call.accounted || (this.#passage?.isComplete ?? false);
  }

  passesOver(status: number): boolean {
    if (!this.#hasNext() || !this.isWanted) return false;
    const headRelayed = this.#relay?.committed ?? false;
    const replayable = this.#isReplayable;
    return verdict({ reason: 'error_answer', status, bytesSent: true, headRelayed, replayable }) === 'next';
  }

  onPassedOver(): void {
    this.#goOn();
  }

  get #isReplayable(): boolean {
    return this.#call.upload?.canReplay ?? this.#call.body !== null;
  }

  /** Whether a target is left that may be asked now; those before it that may not are passed over. */
  #hasNext(): boolean {
    const now = performance.now();
    for (; this.#index < this.#targets.length; this.#index++) {
      if (this.#services.health.of(this.#targets[this.#index] as Target).mayTake(now)) return true;
    }
    return false;
  }

  /** Asks the next target in place of the one before. */
  #goOn(): void {
    const target = this.#targets[this.#index] as Target;
    this.#call.retries++;
    this.#services.attempts.recordRetry(target);
    this.next();
  }

  next(): void {
    const target = this.#targets[this.#index++] as Target;
    const { translation, protocol } = this.#endpoint;
    const { upload } = this.#call;
    this.#call.target = target;
    try {
      if (upload !== null) this.#send(target, prepareUpload(this.#call, upload, this.#endpoint, target));
      else if (target.native.has(protocol))
        this.#send(target, prepareNative(this.#call, this.#endpoint, target));
      else this.#translate(target, translation);
    } catch (fault) {
      this.#onRefused(fault);
    }
  }

  #translate(target: Target, translation: Translation | null): void {
    const call = this.#call;
    if (translation === null) throw new Error(`${this.#endpoint.protocol} cannot be translated`);
    call.path = 'translated';
    if (call.turn !== null) {
      call.turn.madeBy = 'gateway';
      if (call.turn.previousId !== null)
        throw new GatewayError('previous_response_not_found', undefined, atPrevious);
      if (call.turn.isWarmUp) {
        this.#warmUp();
        return;
      }
    }
    const request = decodeCall(call, translation);
    if (translation.answerHere !== null) {
      this.#answerHere(translation.answerHere(request));
      return;
    }
    if (target.wire === 'generateContent' && this.#fetchMedia(target, translation, request)) return;
    this.#send(target, prepareTranslated(call, translation, target, request));
  }

  /** @returns false when there is nothing to fetch */
  #fetchMedia(target: Target, translation: Translation, request: ConversationRequest): boolean {
    const wanted = remoteMedia(request.turns);
    if (wanted.length === 0) return false;
    const call = this.#call;
    const { bodyBytes, bufferedBytes } = call.running.snapshot.limits;
    const maxBytes = Math.min(bodyBytes, mostFetched, Math.floor(bufferedBytes / (fetchShare * fetchCopies)));
    const limits = {
      maxBytes,
      timeoutMs: this.#timeLeft(),
      allowPrivate: target.upstream.fetchPrivate,
    };
    reserveBody(this.#services, call, fetchCopies * maxBytes);
    const cancel = fetchMedia(request, wanted, limits, (result) => {
      if (call.accounted) return;
      shrinkReservation(this.#services, call, call.body?.length ?? 0);
      try {
        if (result instanceof GatewayError) throw result;
        this.#send(target, prepareTranslated(call, translation, target, result));
      } catch (fault) {
        this.#onRefused(fault);
      }
    });
    this.#isLate = true;
    this.#relay ??= new Relay(this.#services, call, this);
    // Stands in for the request to the upstream, so that a client that leaves ends the fetch as well.
    this.#relay.reset(null, { resume: () => {}, cancel, sentAt: 0, bodyReleased: false });
    return true;
  }

  #answerHere(json: string): void {
    const call = this.#call;
    this.#relay?.leave();
    call.exchange.respond(200, ownLines(call) + timingLine(call), json);
    account(this.#services, call, 'complete');
  }

  #send(target: Target, prepared: Prepared): void {
    const call = this.#call;
    call.path = prepared.path;
    if (prepared.path === 'translated') this.#reserve(prepared.body);
    this.#relay ??= new Relay(this.#services, call, this);
    const relay = this.#relay;
    relay.reset(prepared.passage, null);
    this.#passage = prepared.passage;
    const deadlines = this.#deadlines();
    const attempt = new Attempt(this.#services, target, this, relay);
    this.#attempt = attempt;
    relay.upstream = attempt;
    attempt.exchange =
      call.turn === null
        ? this.#post(target, prepared, deadlines, attempt)
        : this.#sendTurn(call.turn, target, prepared, deadlines, attempt);
  }

  #post(
    target: Target,
    prepared: Prepared,
    deadlines: Deadlines,
    handler: UpstreamHandler,
  ): UpstreamExchange {
    return this.#services.upstream.send(
      target.upstream.origin,
      {
        method: 'POST',
        head: upstreamHead(this.#call, target, prepared),
        body: prepared.body,
        source: prepared.source,
      },
      deadlines,
      handler,
    );
  }

  /** @returns null when the gateway itself has answered */
  #sendTurn(
    turn: TurnCall,
    target: Target,
    prepared: Prepared,
    deadlines: Deadlines,
    handler: UpstreamHandler,
  ): UpstreamExchange | null {
    const otherwise = (): UpstreamExchange | null => {
      turn.madeBy = prepared.path === 'translated' ? 'gateway' : 'request';
      if (!turn.isWarmUp) return this.#post(target, prepared, deadlines, handler);
      turn.madeBy = 'gateway';
      this.#attempt?.leave();
      this.#warmUp();
      return null;
    };
    if (!turn.lane.takes(target, prepared)) return otherwise();
    turn.madeBy = 'lane';
    const { isWarmUp } = turn;
    return turn.lane.send(this.#call, { target, prepared, deadlines, handler, isWarmUp, otherwise });
  }

  /** The gateway remembers what the message held, where no upstream can. */
  #warmUp(): void {
    const { model, exchange } = this.#call;
    const id = exchange.id.slice('req_'.length);
    this.#answerHere(warmUpAnswer(model?.name ?? '', id, Math.floor(Date.now() / 1000)));
  }

  /** The body that was written stands in memory beside the one that came. */
  #reserve(body: readonly Buffer[]): void {
    const call = this.#call;
    let needed = call.body?.length ?? 0;
    for (const piece of body) needed += piece.length;
    if (needed > call.reserved) reserveBody(this.#services, call, needed - call.reserved);
    else shrinkReservation(this.#services, call, needed);
  }

  /** What is left of the total time after the attempts so far. */
  #deadlines(): Deadlines {
    const { timeouts, limits } = this.#call.running.snapshot;
    const { upload, exchange } = this.#call;
    if (upload !== null) return uploadDeadlines(timeouts, exchange.head.contentLength, limits.uploadBytes);
    if (this.#index === 1 && !this.#isLate) return timeouts;
    return { ...timeouts, totalMs: this.#timeLeft() };
  }

  /** Milliseconds of the call's total time. */
  #timeLeft(): number {
    const { totalMs } = this.#call.running.snapshot.timeouts;
    return Math.max(1, totalMs - (performance.now() - this.#call.validatedAt));
  }

  /** A target that cannot be asked this: the next one may speak a protocol that can. */
  #onRefused(fault: unknown): void {
    if (fault instanceof GatewayError && this.#index < this.#targets.length) {
      this.next();
      return;
    }
    this.#end(this.#failure ?? fault, null);
  }

  abandon(fault: unknown): void {
    this.#attempt?.leave();
    this.#relay?.upstream?.cancel();
    this.#end(fault, null);
  }

  onErrorAnswer(error: GatewayError, head: ResponseHead): void {
    this.#end(error, head);
  }

  #end(fault: unknown, head: ResponseHead | null): void {
    if (this.#relay === null) refuse(this.#services, this.#call, fault);
    else this.#relay.refuse(fault, head);
  }

  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void {
    const decision = verdict({
      reason: failure?.reason ?? 'unusable_answer',
      bytesSent: failure?.bytesSent ?? true,
      headRelayed: false,
      replayable: this.#isReplayable,
    });
    if (this.#hasNext() && decision === 'next' && this.#call.exchange.alive) {
      this.#failure = error;
      this.#goOn();
      return;
    }
    this.#end(error, null);
  }
}

const atPrevious = { param: 'previous_response_id' };

/** Bytes of an upload in a millisecond that a client may be expected to send. */
const slowestUpload = 64;

/** An upload may take as long as its size asks for, since both sides are watched for silence. */
function uploadDeadlines(timeouts: Deadlines, announced: number, most: number): Deadlines {
  const bytes = announced === -1 ? most : announced;
  return { ...timeouts, totalMs: timeouts.totalMs + bytes / slowestUpload };
}
