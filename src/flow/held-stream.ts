import type { RelayedAttempt } from '../attempts/relayed-attempt.js';
import type { StreamVerdict } from '../conversation/stream-rules.js';
import type { FaultPlace, GatewayError } from '../errors.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import { answerError, endedUnbegun, isEventStream } from './answer-content.js';
import { Events } from './answer-phase.js';

/** More than this is not held back: what begins so is taken for an answer. */
const mostHeld = 64 * 1024;

/** Goes on with one of two attempts at streams. */
interface StreamChooser {
  /** Its first event has come: it will be handed on. */
  choose(attempt: RelayedAttempt): void;
  /**
   * It is of no use.
   * @param error why; null where that of the other would only be better
   * @returns true when it was given up for the other, which is under way
   */
  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean;
}

/** Takes the answer that was chosen. */
export interface StreamTaker extends UpstreamHandler {
  /**
   * In place of `onHead`, for a stream whose beginning was judged.
   * @param run the events that were judged last; null where none is whole
   */
  onBegun(events: Events, run: Buffer | null, verdict: StreamVerdict): boolean;
}

/**
 * Stands between an attempt and the relay while there may be two attempts of a call that is a stream: keeps an answer
 * back until its first event tells that it is one.
 */
export class HeldStream implements UpstreamHandler {
  readonly #chooser: StreamChooser;
  readonly #relay: StreamTaker;
  readonly #attempt: RelayedAttempt;
  /** What has come, while it is held back. */
  events: Events | null = null;
  /** It was given up for the other. */
  #isLost = false;

  constructor(chooser: StreamChooser, relay: StreamTaker, attempt: RelayedAttempt) {
    this.#chooser = chooser;
    this.#relay = relay;
    this.#attempt = attempt;
  }

  onHead(head: ResponseHead): void {
    const refusal = answerError(head, true);
    if (refusal === null && head.status < 400 && isEventStream(head)) {
      this.events = new Events(this.#attempt.transform, head);
      // What is not called a stream may be handed on all the same, where there is no better one.
    } else if (head.status >= 400 || !this.#loses(refusal)) {
      this.#choose(head.status < 400 && refusal === null);
      this.#relay.onHead(head);
    }
  }

  onData(chunk: Buffer): boolean {
    if (this.#isLost) return true;
    const events = this.events;
    if (events === null) return this.#relay.onData(chunk);
    const run = events.runs.push(chunk);
    if (run === null) return events.runs.held <= mostHeld || this.#pass(events, null, 'silence', true);
    const verdict = events.judge(run);
    if (verdict === 'silence') return true;
    if (verdict !== 'meaningful' && this.#loses(verdict)) return true;
    return this.#pass(events, run, verdict, verdict === 'meaningful');
  }

  onEnd(): void {
    const events = this.events;
    if (events !== null) {
      const run = events.last();
      const verdict = run === null ? 'silence' : events.judge(run);
      if (verdict !== 'meaningful' && this.#loses(verdict === 'silence' ? endedUnbegun() : verdict)) return;
      this.#pass(events, run, verdict, verdict === 'meaningful');
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

  /** @param isAnswer what is no answer is handed on when no other attempt is left, and has overtaken none */
  #choose(isAnswer: boolean): void {
    this.events = null;
    if (isAnswer) this.#chooser.choose(this.#attempt);
  }

  #pass(events: Events, run: Buffer | null, verdict: StreamVerdict, isAnswer: boolean): boolean {
    this.#choose(isAnswer);
    return this.#relay.onBegun(events, run, verdict);
  }
}

/** What has come of an attempt's good answer that is held back until its first event; null for any other. */
export function heldBackOf({ handler }: RelayedAttempt): Events | null {
  return handler instanceof HeldStream ? handler.events : null;
}
