import { performance } from 'node:perf_hooks';
import type { RelayedAttempt } from '../../attempts/relayed-attempt.js';
import { tokensOf } from '../../conversation/estimate-usage.js';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { Gather } from '../../stream/gather.js';
import { streamedWeight } from '../../stream/streamed-text.js';
import type { ResponseHead, UpstreamHandler } from '../../upstream/types.js';
import type { RoutedCall } from '../call.js';
import { releaseBody, takeAnswerMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { noteUsage } from '../record/consumption.js';
import type { Services } from '../services.js';
import { Hedge } from '../upstream/hedge.js';
import { isEventStream, isMedia } from './content.js';
import type { Detached } from './detached-list.js';
import type { AnswerEnds } from './ends.js';
import { heldBackOf } from './held.js';
import { Events, type Phase } from './phase.js';

/** Output tokens that are read for nobody at most. */
const mostTokens = 2000;
/** No more than this is kept of an unfinished event, or of an answer that is understood only as a whole. */
const mostHeld = 64 * 1024;

/**
 * Reads on for a call whose client has left, so that the upstream tells what the call has used: it bills what it has
 * made, whoever takes it. What the call holds of limits of calls at once is free from now on. Else the upstream is
 * cancelled: for media and uploads, of which most would be in vain, by the config, and when too many are read on for
 * already.
 * @returns whether it is read on for the call, which is accounted for when that ends
 */
export function detachOrCancel(answer: AnswerEnds): boolean {
  if (answer.awaited instanceof Hedge) answer.awaited.onClientLeft();
  const { services, call, awaited, attempt, phase } = answer;
  // Else there is a pause between two attempts.
  if (attempt !== null && isWorthReading(services, call, attempt, phase)) {
    new DetachedAnswer(answer, attempt).begin(phase);
    return true;
  }
  if (phase.name !== 'over' && phase.name !== 'sent') awaited?.cancel();
  return false;
}

function isWorthReading(
  services: Services,
  call: RoutedCall,
  attempt: RelayedAttempt,
  phase: Phase,
): boolean {
  if (attempt.sentAt === 0 || !services.detached.hasRoom(call.key.id)) return false;
  if (call.target.upstream.onLeave === 'cancel' || call.upload !== null || call.socketCall !== null)
    return false;
  // It goes on without its connection, and tells later.
  if (call.begun !== null && call.begun.id !== null) return false;
  if ((call.route.endpoint?.metering.estimates ?? 'none') === 'none') return false;
  switch (phase.name) {
    case 'waiting':
      return !attempt.isAnswered || heldBackOf(attempt) !== null;
    case 'events':
    case 'whole':
    case 'bytes':
      return phase.head.status < 300 && !isMedia(phase.head);
    default:
      return false;
  }
}

/** Takes the rest of an answer in place of a client that has left, for its usage alone, and then accounts for the call. */
class DetachedAnswer implements UpstreamHandler, Detached {
  readonly keyId: string;
  readonly #services: Services;
  readonly #call: RoutedCall;
  readonly #attempt: RelayedAttempt;
  readonly #transform: AnswerTransform;
  #hasBegun: boolean;
  #head: ResponseHead | null = null;
  /** Of a stream. */
  #events: Events | null = null;
  /** Of an answer that is understood only as a whole. */
  #whole: Gather | null = null;
  #tokens = 0;
  #isOver = false;

  constructor({ services, call, handedOn }: AnswerEnds, attempt: RelayedAttempt) {
    this.#services = services;
    this.#call = call;
    this.#attempt = attempt;
    this.#transform = attempt.transform;
    this.#hasBegun = handedOn === 'answer';
    this.keyId = call.key.id;
  }

  /** @param phase of the answer when its client left */
  begin(phase: Phase): void {
    const call = this.#call;
    call.leftAt = performance.now();
    this.#services.detached.add(this);
    call.limited?.freeSlots();
    releaseBody(this.#services, call, this.#attempt, this.#transform);
    this.#events = phase.name === 'events' ? phase : heldBackOf(this.#attempt);
    this.#head = 'head' in phase ? phase.head : (this.#events?.head ?? null);
    this.#attempt.handler = this;
    if (phase.name === 'whole') {
      this.#beginWhole();
      if (phase.gathered !== null) this.onData(phase.gathered.take());
      takeAnswerMemory(this.#services, call, 0);
    }
    // It may have waited for its client.
    this.#attempt.resume();
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    this.#call.answeredAt = performance.now();
    if (head.status >= 300 || isMedia(head)) this.#stop(true);
    else if (isEventStream(head)) this.#events = new Events(this.#transform, head);
    else this.#beginWhole();
  }

  onData(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    try {
      this.#take(chunk);
    } catch (fault) {
      this.onFault('upstream', fault);
    }
    return true;
  }

  onEnd(): void {
    try {
      this.#takeEnd();
    } catch (fault) {
      this.onFault('upstream', fault);
    }
  }

  onFailure(): void {
    this.#finish(!this.#transform.isComplete);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#services.reportFault(where, fault, this.#call);
    this.stop();
  }

  stop(): void {
    this.#stop(false);
  }

  /** Reads no more. @param isBroken there is no answer whose cost could be told */
  #stop(isBroken: boolean): void {
    if (this.#isOver) return;
    this.#attempt.cancel();
    this.#finish(isBroken);
  }

  #beginWhole(): void {
    if (!this.#transform.divisible) this.#whole = new Gather(mostHeld);
  }

  #take(chunk: Buffer): void {
    if (this.#events !== null) this.#onEvents(this.#events, chunk);
    else if (this.#whole === null) this.#transform.note(chunk);
    else if (!this.#whole.add(chunk, -1)) this.stop();
  }

  #onEvents(events: Events, chunk: Buffer): void {
    const run = events.runs.push(chunk);
    if (run !== null) this.#pass(events, run);
    if (events.runs.held > mostHeld) this.stop();
  }

  #pass(events: Events, run: Buffer): void {
    const { transform, runs } = events;
    if (this.#isOver) return;
    if (!this.#hasBegun) {
      const judged = events.judge(run);
      if (judged === 'silence') return;
      if (judged !== 'meaningful') {
        this.#stop(true);
        return;
      }
      this.#hasBegun = true;
    }
    transform.pass(run, runs.overlong);
    this.#tokens += tokensOf(streamedWeight(run, run.length));
    if (transform.failure !== null) this.#stop(true);
    else if (transform.endsItself && transform.isComplete) this.#endComplete();
    else if (this.#tokens > mostTokens) this.stop();
  }

  #endComplete(): void {
    this.#transform.end();
    if (this.#transform.isCut) this.stop();
    else this.#finish(false);
  }

  #takeEnd(): void {
    if (this.#isOver) return;
    const events = this.#events;
    if (events !== null) {
      const event = events.last();
      if (event !== null) this.#pass(events, event);
      if (this.#hasBegun && !this.#isOver) this.#transform.end();
    } else if (this.#whole !== null) this.#readWhole(this.#whole.take());
    this.#finish(events !== null && !this.#hasBegun);
  }

  /** What is none of its endpoint's is told as that to nobody. */
  #readWhole(body: Buffer): void {
    try {
      this.#transform.whole(body);
    } catch (fault) {
      if (!(fault instanceof GatewayError)) throw fault;
    }
  }

  #finish(isBroken: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#services.detached.remove(this);
    try {
      noteUsage(this.#call, this.#transform, this.#head, 'client_gone', isBroken);
    } finally {
      account(this.#services, this.#call, 'client_gone');
    }
  }
}
