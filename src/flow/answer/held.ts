import type { RelayedAttempt } from '../../attempts/relayed-attempt.js';
import type { StreamStart } from '../../conversation/stream-rules.js';
import type { FaultPlace, GatewayError } from '../../errors.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../../upstream/types.js';
import { answerError, endedUnbegun, isEventStream } from './content.js';
import { Events } from './phase.js';

/** More than this is not held back: what begins so is taken for an answer. */
const mostHeld = 64 * 1024;

/** Goes on with one of two attempts. */
interface AnswerChooser {
  /** It answers well: it will be handed on. */
  choose(attempt: RelayedAttempt): void;
  /**
   * It is of no use.
   * @param error why; null where this answer could be used, but the other's would be better
   * @returns true when it was given up for the other, which is under way
   */
  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean;
}

/** Takes the answer that was chosen. */
export interface AnswerTaker extends UpstreamHandler {
  /**
   * In place of `onHead`, for a stream whose beginning was judged.
   * @param run the events that were judged last; null where none is whole
   */
  onBegun(events: Events, run: Buffer | null, judged: StreamStart): boolean;
}

/**
 * Stands between an attempt and the relay while there may be two attempts of a call, until it is known that its answer is
 * one: by its head, and that of a stream by its first event, up to which it is kept back.
 */
export class HeldAnswer implements UpstreamHandler {
  readonly #chooser: AnswerChooser;
  readonly #relay: AnswerTaker;
  readonly #attempt: RelayedAttempt;
  readonly #isStream: boolean;
  /** What has come of a stream, while it is kept back. */
  events: Events | null = null;
  /** It was given up for the other. */
  #isLost = false;

  /** @param isStream a stream is asked for */
  constructor(chooser: AnswerChooser, relay: AnswerTaker, attempt: RelayedAttempt, isStream: boolean) {
    this.#chooser = chooser;
    this.#relay = relay;
    this.#attempt = attempt;
    this.#isStream = isStream;
  }

  onHead(head: ResponseHead): void {
    const isGood = head.status < 400;
    const refusal = this.#isStream ? answerError(head, true) : null;
    if (this.#isStream && isGood && refusal === null && isEventStream(head))
      this.events = new Events(this.#attempt.transform, head);
    // What is not called a stream may be handed on all the same, where there is no better one.
    else if (!this.#isStream || !isGood || !this.#loses(refusal)) {
      this.#release(isGood && refusal === null);
      this.#relay.onHead(head);
    }
  }

  onData(chunk: Buffer): boolean {
    if (this.#isLost) return true;
    const events = this.events;
    if (events === null) throw new Error('an answer without a head');
    const run = events.runs.push(chunk);
    if (run === null) return events.runs.held <= mostHeld || this.#pass(events, null, 'silence', true);
    const judged = events.judge(run);
    if (judged === 'silence') return true;
    if (judged !== 'meaningful' && this.#loses(judged)) return true;
    return this.#pass(events, run, judged, judged === 'meaningful');
  }

  onEnd(): void {
    const events = this.events;
    if (events !== null) {
      const run = events.last();
      const judged = run === null ? 'silence' : events.judge(run);
      if (judged !== 'meaningful' && this.#loses(judged === 'silence' ? endedUnbegun() : judged)) return;
      this.#pass(events, run, judged, judged === 'meaningful');
    }
    if (!this.#isLost) this.#relay.onEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    if (!this.#isLost) this.#relay.onFailure(failure);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#relay.onFault?.(where, fault);
  }

  #loses(error: GatewayError | null): boolean {
    this.#isLost = this.#chooser.giveUpForOther(this.#attempt, error);
    return this.#isLost;
  }

  /** Holds nothing more back. @param isAnswer it is a good answer, which ends the other attempt; else no other is left */
  #release(isAnswer: boolean): void {
    this.events = null;
    this.#attempt.handler = this.#relay;
    if (isAnswer) this.#chooser.choose(this.#attempt);
  }

  #pass(events: Events, run: Buffer | null, judged: StreamStart, isAnswer: boolean): boolean {
    this.#release(isAnswer);
    return this.#relay.onBegun(events, run, judged);
  }
}

/** What has come of an attempt's good answer that is held back until its first event; null for any other. */
export function heldBackOf({ handler }: RelayedAttempt): Events | null {
  return handler instanceof HeldAnswer ? handler.events : null;
}
