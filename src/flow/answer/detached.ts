import { performance } from 'node:perf_hooks';
import type { RelayedAttempt } from '../../attempts/relayed-attempt.js';
import { tokensOf } from '../../conversation/estimate-usage.js';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { Gather } from '../../stream/gather.js';
import { streamedWeight } from '../../stream/streamed-text.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../../upstream/types.js';
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

/** How many output tokens of a detached call are read at most. */
const mostTokens = 2000;
/** How many bytes of an unfinished event, or of an answer that can only be parsed whole, are held at most. */
const mostHeld = 64 * 1024;

/**
 * Continues to read the upstream of a call whose client has disconnected, so that the upstream reports the usage: it bills
 * all output, whether or not a client reads it. The call's slots in concurrency limits are free from now on. The upstream is
 * cancelled instead for media and uploads, most of which would be read in vain; if the config says so; and if too many calls
 * are detached already.
 * @returns whether the call is detached. It is then accounted for when reading ends
 */
export function detachOrCancel(answer: AnswerEnds): boolean {
  if (answer.awaited instanceof Hedge) answer.awaited.onClientLeft();
  const { services, call, awaited, attempt, phase } = answer;
  // Without an attempt, the call is in a pause between two attempts.
  if (attempt !== null && isWorthReading(services, call, attempt, phase)) {
    new DetachedAnswer(answer, attempt).begin(phase);
    return true;
  }
  if (phase.name !== 'ended' && phase.name !== 'sent') awaited?.cancel();
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
  // The response continues in the background without its connection, and reports its usage later.
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

/** Reads the rest of an answer after its client has disconnected, only for the usage, and then accounts for the call. */
class DetachedAnswer implements UpstreamHandler, Detached {
  readonly keyId: string;
  readonly #services: Services;
  readonly #call: RoutedCall;
  readonly #attempt: RelayedAttempt;
  readonly #transform: AnswerTransform;
  #hasBegun: boolean;
  #head: ResponseHead | null = null;
  /** Set for a stream. */
  #events: Events | null = null;
  /** Set for an answer that can only be parsed whole. */
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

  /** @param phase of the answer when the client disconnected */
  begin(phase: Phase): void {
    const call = this.#call;
    call.leftAt = performance.now();
    this.#services.detached.add(this);
    call.limits?.freeSlots();
    releaseBody(this.#services, call, this.#attempt, this.#transform);
    this.#events = phase.name === 'events' ? phase : heldBackOf(this.#attempt);
    this.#head = 'head' in phase ? phase.head : (this.#events?.head ?? null);
    this.#attempt.handler = this;
    if (phase.name === 'whole') {
      this.#beginWhole();
      if (phase.gathered !== null) this.onData(phase.gathered.take());
      takeAnswerMemory(this.#services, call, 0);
    }
    // The attempt may have been paused for the client.
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

  onFailure({ reason }: UpstreamFailure): void {
    // A silent upstream has the request, as if it had been given up before its deadline.
    const isSilent = this.#head === null && reason.endsWith('timeout');
    this.#finish(!isSilent && !this.#transform.isComplete);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#services.reportFault(where, fault, this.#call);
    this.stop();
  }

  stop(): void {
    this.#stop(false);
  }

  /** Stops reading. @param isBroken there is no answer whose usage could be known */
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

  /** An answer that does not belong to its endpoint needs no error, since no client is left. */
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
      const isSent = this.#head !== null || this.#attempt.isWritten;
      if (isSent && !this.#attempt.isErrorComing)
        noteUsage(this.#call, this.#transform, this.#head, 'client_gone', isBroken);
    } finally {
      account(this.#services, this.#call, 'client_gone');
    }
  }
}
