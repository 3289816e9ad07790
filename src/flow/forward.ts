import type { Target } from '../config/types.js';
import type { ConversationRequest } from '../conversation/request.js';
import { GatewayError } from '../errors.js';
import type { Endpoint, Translation } from '../protocols/protocol.js';
import { warmUpAnswer } from '../protocols/responses/turn.js';
import type { FailedAttempt } from '../routing/verdict.js';
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
import type { Candidates } from './candidates.js';
import { deadlinesLeft, timeLeft } from './deadlines.js';
import { fetchMedia, remoteMedia } from './fetch-media.js';
import { Pause } from './pause.js';
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
  const forwarding = new Forwarding(services, call, endpoint, routeCall(services, call, targets));
  forwarding.ask();
  return forwarding;
}

/** The attempts of one call. */
class Forwarding implements AttemptOwner, AttemptJudge, Sending {
  readonly #services: Services;
  readonly #call: Call;
  readonly #endpoint: Endpoint;
  readonly #candidates: Candidates;
  #relay: Relay | null = null;
  #attempt: Attempt | null = null;
  /** Why an attempt before failed: a target that then cannot be asked at all is not the caller's mistake. */
  #failure: GatewayError | null = null;
  /** Time went by before the first attempt. */
  #isLate = false;
  /** Milliseconds to wait before the attempt that takes the place of one that is given up. */
  #wait = 0;

  constructor(services: Services, call: Call, endpoint: Endpoint, candidates: Candidates) {
    this.#services = services;
    this.#call = call;
    this.#endpoint = endpoint;
    this.#candidates = candidates;
  }

  get isWanted(): boolean {
    return this.#call.exchange.alive;
  }

  passesOver(status: number): boolean {
    return this.#mayGoOn({
      reason: 'error_answer',
      status,
      bytesSent: true,
      headRelayed: this.#relay?.committed ?? false,
      replayable: this.#isReplayable,
    });
  }

  onPassedOver(): void {
    this.#goOn();
  }

  get #isReplayable(): boolean {
    return this.#call.upload?.canReplay ?? this.#call.body !== null;
  }

  /** Whether there is an attempt to follow one that failed: then `#goOn` makes it. */
  #mayGoOn(attempt: FailedAttempt): boolean {
    if (!this.isWanted) return false;
    const wait = this.#candidates.after(attempt);
    this.#wait = wait ?? 0;
    return wait !== null;
  }

  #goOn(): void {
    if (this.#wait === 0) this.ask();
    else this.#relay?.reset(null, new Pause(this.#wait, () => this.ask()));
  }

  /** Asks the present one of the candidates. */
  ask(): void {
    const { target } = this.#candidates;
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
      timeoutMs: timeLeft(call),
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
    const deadlines = this.#deadlines();
    const attempt = new Attempt(this.#services, this.#candidates, this, relay);
    this.#attempt = attempt;
    relay.upstream = attempt;
    attempt.exchange =
      call.turn === null
        ? this.#post(target, this.#candidates.key, prepared, deadlines, attempt)
        : this.#sendTurn(call.turn, target, prepared, deadlines, attempt);
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
    const { key } = this.#candidates;
    const otherwise = (): UpstreamExchange | null => {
      turn.madeBy = prepared.path === 'translated' ? 'gateway' : 'request';
      if (!turn.isWarmUp) return this.#post(target, key, prepared, deadlines, handler);
      turn.madeBy = 'gateway';
      this.#attempt?.leave();
      this.#warmUp();
      return null;
    };
    if (!turn.lane.takes(target, prepared)) return otherwise();
    turn.madeBy = 'lane';
    const { isWarmUp } = turn;
    return turn.lane.send(this.#call, { target, key, prepared, deadlines, handler, isWarmUp, otherwise });
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
    if (this.#call.retries === 0 && !this.#isLate) return timeouts;
    return deadlinesLeft(this.#call);
  }

  /** A target that cannot be asked this: the next one may speak a protocol that can. */
  #onRefused(fault: unknown): void {
    if (fault instanceof GatewayError && this.#candidates.skip()) {
      this.ask();
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
    const mayGoOn = this.#mayGoOn({
      reason: failure?.reason ?? 'unusable_answer',
      bytesSent: failure?.bytesSent ?? true,
      headRelayed: false,
      replayable: this.#isReplayable,
    });
    if (mayGoOn) {
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
