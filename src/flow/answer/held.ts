import type { RelayedAttempt } from '../../attempts/relayed-attempt.js';
import type { StreamStart } from '../../conversation/stream-rules.js';
import type { FaultPlace, GatewayError } from '../../errors.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../../upstream/types.js';
import { answerError, emptyStreamError, isEventStream } from './content.js';
import { Events } from './phase.js';

/** Bytes that are held back at most. A longer beginning is treated as a good answer. */
const mostHeld = 64 * 1024;

/** Decides between the two attempts of a call. */
interface AnswerChooser {
  /** Called when the attempt has a good answer, which will be relayed. */
  choose(attempt: RelayedAttempt): void;
  /**
   * Called when the attempt's answer is useless.
   * @param error why; null if this answer could be used, but one of the other attempt would be better
   * @returns true if it was given up for the other attempt, which is in flight
   */
  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean;
}

/** Relays the answer that was chosen. */
export interface AnswerTaker extends UpstreamHandler {
  /**
   * Called instead of `onHead`, for a stream whose beginning was judged.
   * @param run the events that were judged last; null if none is complete
   */
  onBegun(events: Events, run: Buffer | null, judged: StreamStart): boolean;
}

/**
 * Stands between an attempt and the relay while a call may have two attempts, until the answer is known to be good: by its
 * head, or for a stream by its first event. The answer is held back until then.
 */
export class HeldAnswer implements UpstreamHandler {
  readonly #chooser: AnswerChooser;
  readonly #relay: AnswerTaker;
  readonly #attempt: RelayedAttempt;
  readonly #isStream: boolean;
  /** The part of a stream that has arrived, while it is held back. */
  events: Events | null = null;
  /** It was given up for the other attempt. */
  #isLost = false;

  /** @param isStream the request is for a stream */
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
    // An answer without the type of a stream may still be relayed if there is no better one.
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
      if (judged !== 'meaningful' && this.#loses(judged === 'silence' ? emptyStreamError() : judged)) return;
      this.#pass(events, run, judged, judged === 'meaningful');
    }
    if (!this.#isLost) this.#relay.onEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    if (!this.#isLost) this.#relay.onFailure(failure);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#relay.onFault(where, fault);
  }

  #loses(error: GatewayError | null): boolean {
    this.#isLost = this.#chooser.giveUpForOther(this.#attempt, error);
    return this.#isLost;
  }

  /** Stops holding back. @param isAnswer the answer is good and ends the other attempt; else no other attempt is left */
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

/**
 * Returns what has arrived of an attempt's good stream that is held back until its first event; null for any other attempt.
 */
export function heldBackOf({ handler }: RelayedAttempt): Events | null {
  return handler instanceof HeldAnswer ? handler.events : null;
}
