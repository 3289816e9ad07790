import type { Model, Target } from '../config/types.js';
import type { ConversationRequest } from '../conversation/request.js';
import { GatewayError } from '../errors.js';
import type { Endpoint, Translation } from '../protocols/protocol.js';
import { warmUpAnswer } from '../protocols/responses/turn.js';
import type { FailedAttempt } from '../routing/verdict.js';
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
import type { Candidates } from './candidates.js';
import { attemptDeadlines, deadlinesLeft, timeLeft } from './deadlines.js';
import { fetchMedia, remoteMedia } from './fetch-media.js';
import { Pause } from './pause.js';
import { decodeCall, type Prepared, prepareNative, prepareTranslated, prepareUpload } from './prepare.js';
import { mayRace, prepareHedge, Race, type Runner } from './race.js';
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
  /** Of the attempt. */
  #passage: Passage | null = null;
  /** Why an attempt before failed: a target that then cannot be asked at all is not the caller's mistake. */
  #failure: GatewayError | null = null;
  /** Time went by before the first attempt. */
  #isLate = false;
  /** Milliseconds to wait before the attempt that follows one that is given up; null where none has to be made. */
  #wait: number | null = null;
  /** While a second target may be asked beside the first, or is. */
  #race: Race | null = null;

  constructor(services: Services, call: Call, endpoint: Endpoint, candidates: Candidates) {
    this.#services = services;
    this.#call = call;
    this.#endpoint = endpoint;
    this.#candidates = candidates;
  }

  get isWanted(): boolean {
    return this.#call.exchange.alive;
  }

  get isServed(): boolean {
    return this.#call.accounted || (this.#passage?.isComplete ?? false);
  }

  passesOver(attempt: Attempt, status: number): boolean {
    if (this.survives(attempt)) {
      this.#wait = null;
      return true;
    }
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
    this.#wait = this.#candidates.after(attempt);
    return this.#wait !== null;
  }

  #goOn(): void {
    if (this.#wait === null) return;
    if (this.#wait === 0) this.ask();
    else this.#relay?.reset(null, new Pause(this.#wait, () => this.ask()));
  }

  onTaken(attempt: Attempt): void {
    const race = this.#race;
    if (race === null) return;
    this.#race = null;
    if (attempt !== this.#attempt) this.#services.attempts.recordHedge(this.#modelName, 'won');
    this.#adopt(race.wonBy(attempt));
  }

  survives(attempt: Attempt): boolean {
    const other = this.#race?.without(attempt) ?? null;
    this.#race = null;
    if (other !== null) this.#adopt(other);
    return other !== null;
  }

  /** What becomes of an attempt is what becomes of the call from now on. */
  #adopt({ attempt, passage, path }: Runner): void {
    this.#attempt = attempt;
    this.#passage = passage;
    this.#call.target = attempt.target;
    this.#call.path = path;
    this.#relay?.reset(passage, attempt);
  }

  get #modelName(): string {
    return this.#call.model?.name ?? '';
  }

  /** Gets ready to ask a second target as well when the first takes too long. */
  #watch(first: Runner): void {
    const { hedgeMs } = this.#call.model as Model;
    this.#services.hedges.of(this.#call.model as Model).earn();
    this.#race = new Race(first, hedgeMs ?? 0, () => this.#hedge());
    if (this.#relay !== null) this.#relay.upstream = this.#race;
  }

  #hedge(): Runner | null {
    const call = this.#call;
    const budget = this.#services.hedges.of(call.model as Model);
    if (!budget.isFree || !this.#candidates.skip()) return null;
    const { target, key } = this.#candidates;
    try {
      const prepared = prepareHedge(this.#services, call, this.#endpoint, target);
      if (prepared === null) return null;
      const attempt = new Attempt(this.#services, this.#candidates, this, this.#relay as Relay);
      attempt.exchange = this.#post(target, key, prepared, deadlinesLeft(call), attempt);
      call.retries++;
      budget.spend();
      this.#services.attempts.recordHedge(this.#modelName, 'sent');
      return { attempt, passage: prepared.passage, path: prepared.path };
    } catch (fault) {
      // The first is still under way.
      if (!(fault instanceof GatewayError)) this.#services.reportFault(call, fault);
      return null;
    }
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
    this.#passage = prepared.passage;
    const deadlines = attemptDeadlines(call, this.#isLate);
    const attempt = new Attempt(this.#services, this.#candidates, this, relay);
    this.#attempt = attempt;
    relay.upstream = attempt;
    attempt.exchange =
      call.turn === null
        ? this.#post(target, this.#candidates.key, prepared, deadlines, attempt)
        : this.#sendTurn(call.turn, target, prepared, deadlines, attempt);
    if (mayRace(call)) this.#watch({ attempt, passage: prepared.passage, path: prepared.path });
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
