import { performance } from 'node:perf_hooks';
import { readErrorAnswer } from '../../attempts/error-answer.js';
import type { AttemptOwner } from '../../attempts/relayed-attempt.js';
import { failureError, statusError } from '../../attempts/reported-error.js';
import type { OwnSecrets } from '../../config/types.js';
import type { StreamStart } from '../../conversation/stream-rules.js';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { Gather } from '../../stream/gather.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../../upstream/types.js';
import type { RoutedCall } from '../call.js';
import { appendAfterEnd, wholeEnd } from '../conversation/keep.js';
import { countAnswerMemory, releaseBody, takeAnswerMemory } from '../memory-budget.js';
import { keepAliveBytes, outcomeOf, refuse } from '../refuse.js';
import type { Services } from '../services.js';
import {
  answerError,
  answerTooLarge,
  beginningOf,
  decide,
  emptyStreamError,
  isEventStream,
  noStream,
  phaseByHead,
  unusableError,
} from './content.js';
import { detachOrCancel } from './detached.js';
import { AnswerEnds } from './ends.js';
import { answerLines, streamLines } from './lines.js';
import {
  type Answering,
  type Bytes,
  type Events,
  ended,
  mayKeepAlive,
  type Phase,
  type Undecided,
  type Whole,
  waiting,
} from './phase.js';

/** A beginning that is too short to be judged well is judged nevertheless if nothing follows for this many milliseconds. */
const heldMs = 500;
/** Phases in which an upstream may not have sent the first event of a requested stream yet. */
const silentPhases: ReadonlySet<Phase['name']> = new Set(['waiting', 'undecided', 'events']);
/** Unfinished events up to this size are not counted in the memory budget. */
const usualEventBytes = 64 * 1024;

/**
 * Relays an upstream's answer to the client through a transform, which leaves the answer as it is or translates it. Each
 * call has one relay for all of its attempts. It is the handler of the upstream's answer and also the listener of the
 * client's side. What the connection reads arrives through the attempt (`RelayedAttempt`), which updates the target's
 * health, and through a `HeldAnswer` while there may be a second attempt. The phases of an answer are in `phase`.
 */
export class Relay extends AnswerEnds implements UpstreamHandler, ExchangeListener {
  #streamed: boolean;
  /**
   * Holds a number from the start: in a field that has held anything else, V8 allocates an object for each number stored.
   */
  #heardAt = 0;

  constructor(services: Services, call: RoutedCall, owner: AttemptOwner) {
    super(services, call, owner);
    this.#streamed = call.validated?.stream ?? false;
    this.#heardAt = call.validatedAt;
    call.exchange.listener = this;
    if (this.#streamed) services.sweepList.add(this);
  }

  /** Prepares for an attempt, or for a wait before one. May only be called before any part of an answer was relayed. */
  reset(awaited: AnswerEnds['awaited']): void {
    this.awaited = awaited;
    this.transform = this.attempt?.transform ?? null;
    this.phase = waiting;
    this.head = null;
    this.stopFirstTokenTimer();
    if (this.call.gathered > 0) takeAnswerMemory(this.services, this.call, 0);
    this.call.sentAt = 0;
    this.call.answeredAt = 0;
  }

  /** The upstream has sent nothing of the requested stream. */
  get isSilent(): boolean {
    return this.handedOn !== 'answer' && silentPhases.has(this.phase.name);
  }

  get #secrets(): OwnSecrets {
    return this.call.target.upstream.secrets;
  }

  onHead(head: ResponseHead): void {
    const transform = this.#noteHead(head);
    if (transform.streamsUnasked && this.handedOn === 'nothing') this.#streamed = isEventStream(head);
    const refusal = answerError(head, this.#streamed);
    if (refusal !== null) this.giveUp(refusal);
    else this.phase = phaseByHead(transform, head, { streamed: this.#streamed, secrets: this.#secrets });
  }

  /** Classifies by its first bytes an answer that should be a stream and does not have the content type of one. */
  #decide(undecided: Undecided, chunk: Buffer, isWhole: boolean): boolean {
    // JSON can neither continue a stream that has begun nor be sent over a WebSocket.
    const mayBeJson = this.handedOn === 'nothing' && this.call.socketCall === null;
    const decided = decide(undecided, chunk, { isWhole, mayBeJson, secrets: this.#secrets });
    if (decided === null) return true;
    if (decided.phase === null) this.giveUp(noStream());
    else this.phase = decided.phase;
    return this.#take(decided.first);
  }

  /**
   * Called instead of `onHead`, for a stream of the current attempt whose beginning the attempt's own transform has judged.
   */
  onBegun(events: Events, run: Buffer | null, judged: StreamStart): boolean {
    this.#noteHead(events.head);
    this.phase = events;
    return run === null || !this.#beginIfGood(judged) || this.#passRun(events, run);
  }

  #noteHead(head: ResponseHead): AnswerTransform {
    this.call.answeredAt = performance.now();
    this.call.sentAt = this.awaited?.sentAt ?? 0;
    this.head = head;
    const transform = this.transform;
    if (transform === null) throw new Error('an answer without an attempt');
    return transform;
  }

  onData(chunk: Buffer): boolean {
    try {
      return this.#take(chunk);
    } catch (fault) {
      this.failByUs(fault);
      return true;
    }
  }

  /** Like `UpstreamHandler.onData`: this method and those that it calls return false to pause reading. */
  #take(chunk: Buffer): boolean {
    const phase = this.phase;
    switch (phase.name) {
      case 'events':
        return this.#onEvents(phase, chunk);
      case 'whole':
        return this.#onWhole(phase, chunk);
      case 'undecided':
        return this.#decide(phase, chunk, false);
      case 'opening':
        return this.#open(phase, phase.beginning.add(chunk), false);
      case 'bytes':
        return this.#onBytes(phase, chunk);
      case 'keeping':
        if (phase.behind !== null) appendAfterEnd(phase.behind, chunk);
        return true;
      default:
        return true;
    }
  }

  onEnd(): void {
    try {
      this.#takeEnd();
    } catch (fault) {
      this.failByUs(fault);
    }
  }

  #takeEnd(): void {
    if (this.phase.name === 'undecided') this.#decide(this.phase, Buffer.alloc(0), true);
    if (this.phase.name === 'opening') this.#open(this.phase, this.phase.beginning.rest(), true);
    const phase = this.phase;
    if (phase.name === 'events') this.#endEvents(phase);
    else if (phase.name === 'whole') this.#endWhole(phase);
    else if (phase.name === 'bytes') {
      this.call.exchange.end();
      this.finishWhole(phase.head);
    }
  }

  onFailure(failure: UpstreamFailure): void {
    const phase = this.phase;
    if (phase.name === 'ended' || phase.name === 'keeping') return;
    const error = failureError(failure);
    // `#noteHead` sets this as well, but possibly no head has arrived.
    this.call.sentAt = this.awaited?.sentAt ?? 0;
    if (this.handedOn === 'answer') this.endFailedUpstream(error);
    else {
      this.phase = ended;
      this.owner.onAttemptFailed(error, failure, null);
    }
  }

  onClientGone(): void {
    if (detachOrCancel(this)) {
      this.phase = ended;
      this.stopTimers();
    } else this.finish('client_gone');
  }

  onDrained(): void {
    const phase = this.phase;
    if (phase.name === 'sent') {
      this.finishWhole(phase.head);
      return;
    }
    this.flowing = true;
    this.#heardAt = performance.now();
    // The client has read the pieces that were in memory of an answer too large to gather.
    if (phase.name === 'bytes') this.#holdOrEnd(0);
    this.awaited?.resume();
  }

  onSweep(now: number): void {
    if (this.phase.name === 'opening') {
      if (now - this.#heardAt >= heldMs) this.#open(this.phase, this.phase.beginning.rest(), false);
      return;
    }
    const { keepAliveMs } = this.call.running.snapshot.timeouts;
    if (
      keepAliveMs === 0 ||
      !this.flowing ||
      this.call.exchange.isBlocked ||
      now - this.#heardAt < keepAliveMs
    )
      return;
    if (!mayKeepAlive(this.phase, this.transform)) return;
    this.#heardAt = now;
    this.#begin('head');
    // Too short to matter if the client does not read it.
    this.call.exchange.write(keepAliveBytes(this.call));
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.call.onFault(where, fault);
  }

  onOurFault(error: GatewayError): void {
    const { awaited } = this;
    const phase = this.phase;
    this.phase = ended;
    this.stopTimers();
    try {
      if (!this.call.exchange.isAnswered) refuse(this.services, this.call, error);
      else if (phase.name === 'events' || phase.name === 'undecided' || phase.name === 'waiting')
        this.writeLastWords(phase, error);
      else this.call.exchange.abort();
    } finally {
      // After the client's side has ended. The target is not at fault, so its attempt is cancelled without a failure.
      awaited?.cancel();
      this.finish(outcomeOf(error), true);
    }
  }

  /** Ends a call that no attempt will answer. @param head of the upstream's answer that the error reports, or null */
  refuse(error: GatewayError, head: ResponseHead | null): void {
    if (this.handedOn !== 'nothing') {
      this.endBroken(error);
      return;
    }
    this.phase = ended;
    this.stopTimers();
    refuse(this.services, this.call, error, head);
  }

  /** @param first bytes of an answer that is passed on as it arrives; null if more are needed */
  #open(opening: Bytes, first: Buffer | null, isWhole: boolean): boolean {
    if (first === null) {
      this.#heardAt = performance.now();
      this.services.sweepList.add(this);
      return true;
    }
    if (this.#giveUpIfUnfit(opening.head, first, isWhole)) return false;
    this.#passOn(opening, first);
    if (this.phase.name !== 'bytes') return false;
    return first.length === 0 || this.#take(first);
  }

  #onBytes({ transform, beginning }: Bytes, chunk: Buffer): boolean {
    const failure = beginning.failureIn(chunk);
    if (failure !== null) {
      this.giveUp(failure);
      return true;
    }
    transform.note(chunk);
    this.flowing = this.call.exchange.write(chunk);
    return this.flowing;
  }

  /**
   * Gives up an answer with a good status that does not belong to its endpoint.
   * @param first its first bytes, or all of it if `isWhole`
   */
  #giveUpIfUnfit(head: ResponseHead, first: Buffer, isWhole: boolean): boolean {
    const answersJson = this.call.route.endpoint?.answersJson !== false;
    const refusal = unusableError(head, first, { isWhole, answersJson, secrets: this.#secrets });
    if (refusal !== null) this.giveUp(refusal);
    return refusal !== null;
  }

  /**
   * Passes on an answer as it arrives, if it is not gathered or has become too large for that. An answer that may not be
   * sent in pieces is given up. An error is sent in the caller's error format.
   */
  #passOn({ transform, head }: Answering, before: Buffer): void {
    if (head.status >= 400) this.#sendError(head, this.#errorOf(head, before) ?? statusError(head, before));
    else if (!transform.divisible)
      this.giveUp(answerTooLarge("The upstream's answer is too large to be changed."));
    else this.#beginBytes(transform, head);
  }

  /** Returns the error for the caller of an error answer, or null if the answer is passed on unchanged. */
  #errorOf(head: ResponseHead, body: Buffer): GatewayError | null {
    const { error } = readErrorAnswer(this.call.target.upstream, head, body);
    return error ?? (this.transform?.exactErrors ? null : statusError(head, body));
  }

  #sendError(head: ResponseHead, error: GatewayError): void {
    this.phase = ended;
    // The attempt has already read the body of an error answer below this size.
    if (head.status >= 500 && isVendorAccountError(error)) this.attempt?.accountRefused(error);
    this.awaited?.cancel();
    // Nothing of an answer about the gateway's account is passed on, including its headers.
    this.refuse(error, isVendorAccountError(error) ? null : head);
  }

  #beginBytes(transform: AnswerTransform, head: ResponseHead): void {
    this.phase = { name: 'bytes', transform, head, beginning: beginningOf(head, this.#secrets) };
    this.handedOn = 'answer';
    this.call.exchange.begin(head.status, answerLines(this.call, head));
    releaseBody(this.services, this.call, this.awaited, this.transform);
  }

  #onWhole(whole: Whole, chunk: Buffer): boolean {
    const { head } = whole;
    if (whole.gathered === null && chunk.length === head.contentLength && this.handedOn === 'nothing') {
      this.#sendWhole(whole, chunk);
      return true;
    }
    whole.gathered ??= new Gather(whole.mostBytes);
    const { gathered } = whole;
    const room = gathered.roomFor(chunk.length, head.contentLength);
    if (room !== -1 && !this.#holdOrEnd(room)) return true;
    if (gathered.add(chunk, head.contentLength) || this.handedOn !== 'nothing') return true;
    const before = gathered.take();
    if (head.status < 300 && this.#giveUpIfUnfit(head, before.length > 0 ? before : chunk, false))
      return true;
    this.#passOn(whole, before);
    if (before.length > 0 && this.#take(before) && this.phase.name === 'bytes') this.#holdOrEnd(0);
    return this.#take(chunk);
  }

  /**
   * Counts the bytes of the answer that are in memory, or about to be.
   * @returns false if there is no room for them, and the call has ended
   */
  #holdOrEnd(bytes: number): boolean {
    const call = this.call;
    if (bytes === call.gathered) return true;
    const refusal = takeAnswerMemory(this.services, call, bytes);
    if (refusal === null) return true;
    // The target has answered the request: it has not failed, and no other target is tried.
    if (this.handedOn !== 'nothing') this.endBroken(refusal, 'no_room');
    else {
      this.attempt?.cancelFor('no_room', refusal);
      this.refuse(refusal, null);
    }
    return false;
  }

  #sendWhole({ transform, head }: Answering, body: Buffer): void {
    let answer: Buffer | string = body;
    if (head.status >= 400) {
      const error = this.#errorOf(head, body);
      if (error !== null) {
        this.#sendError(head, error);
        return;
      }
    }
    if (head.status < 300) {
      if (this.#giveUpIfUnfit(head, body, true)) return;
      try {
        answer = transform.whole(body);
      } catch (fault) {
        if (!(fault instanceof GatewayError)) throw fault;
        this.giveUp(fault);
        return;
      }
    }
    const { keep } = transform;
    const end = keep === null ? null : wholeEnd(keep, head, answer);
    if (end === null) this.#respond(head, answer);
    else
      this.whenKept(end, (result) => {
        if (result instanceof GatewayError) this.refuse(result, null);
        else this.#respond(head, result);
      });
  }

  #respond(head: ResponseHead, answer: Buffer | string): void {
    const call = this.call;
    if (call.exchange.respond(head.status, answerLines(call, head), answer)) this.finishWhole(head);
    else {
      // Only what the client has not read counts: the upstream's bytes have become the answer.
      countAnswerMemory(this.services, call, call.exchange.bytesOut);
      this.phase = { name: 'sent', head };
    }
  }

  #endWhole(whole: Whole): void {
    const { head } = whole;
    const body = whole.gathered?.take() ?? Buffer.alloc(0);
    if (this.handedOn !== 'nothing') this.endBroken(this.#errorOf(head, body) ?? statusError(head, body));
    else this.#sendWhole(whole, body);
  }

  /** @param part of the stream that is sent next */
  #begin(part: 'head' | 'answer'): void {
    const before = this.handedOn;
    if (before !== 'answer') this.handedOn = part;
    if (before === 'nothing') this.call.exchange.begin(200, streamLines(this.call, this.head));
  }

  #onEvents(events: Events, chunk: Buffer): boolean {
    const { transform, runs } = events;
    const run = runs.push(chunk);
    const held = runs.held + transform.gatheredBytes;
    if ((held > usualEventBytes || this.call.gathered > 0) && !this.#holdOrEnd(held)) return true;
    if (run === null) return true;
    if (runs.overlong && !transform.divisible) {
      this.giveUp(answerTooLarge('An event of the upstream is too large to be passed on.'));
      return true;
    }
    if (this.handedOn !== 'answer' && !this.#beginIfGood(events.judge(run))) return true;
    return this.#passRun(events, run);
  }

  /** Gives up what is no answer. @returns whether the judged events are the beginning of an answer */
  #beginIfGood(judged: StreamStart): boolean {
    if (judged === 'silence') return false;
    if (judged !== 'meaningful') {
      if (judged.unbegun) this.giveUnbegun(judged);
      else this.giveUp(judged);
      return false;
    }
    this.stopFirstTokenTimer();
    this.#begin('answer');
    releaseBody(this.services, this.call, this.awaited, this.transform);
    return true;
  }

  #passRun({ transform, runs }: Events, run: Buffer): boolean {
    const passed = transform.pass(run, runs.overlong);
    if (passed.length > 0) {
      this.#heardAt = performance.now();
      this.flowing = this.call.exchange.write(passed);
    }
    const { failure } = transform;
    if (failure?.isTold) this.endFailed(failure.error);
    else if (failure !== null) this.giveUp(failure.error);
    else if (transform.endsItself && transform.isComplete) this.endComplete(transform);
    return this.flowing;
  }

  #endEvents(events: Events): void {
    const { transform } = events;
    const event = events.last();
    if (event !== null) this.#onEvents(events, event);
    // Judging the rest may have ended the call.
    if (this.phase !== events) return;
    const { exchange } = this.call;
    if (this.handedOn !== 'answer' && transform.exactErrors) {
      this.giveUnbegun(emptyStreamError());
      return;
    }
    const { last, error } = transform.end();
    if (this.handedOn !== 'answer' && transform.failure !== null) {
      this.giveUnbegun(transform.failure.error);
      return;
    }
    this.#begin('head');
    if (last !== null) exchange.write(last);
    if (error !== null) this.endBroken(error);
    else if (transform.passedError !== null) this.endFailed(transform.passedError);
    else this.endGood(transform);
  }
}
