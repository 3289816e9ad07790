import type { Protocol, Upstream } from '../config/types.js';
import type { FailedAttempt } from '../routing/verdict.js';
import { Gather } from '../stream/gather.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamFailure,
  UpstreamFailureReason,
  UpstreamHandler,
} from '../upstream/client.js';
import { reserveBody, shrinkReservation } from './admit.js';
import type { Call } from './call.js';
import type { Services } from './services.js';
import type { Trial } from './trial.js';
import { type OneOffRequest, oneOffHead } from './upstream-head.js';

/** One request to an upstream whose answer is read whole. */
export interface Question extends OneOffRequest {
  readonly upstream: Upstream;
  readonly body: readonly Buffer[];
  readonly wire: Protocol;
  readonly deadlines: Deadlines;
  /**
   * Hears how it goes, but for the end of a good answer: whoever asks sees whether it is of use. Null for a question that
   * says nothing of a target.
   */
  readonly trial: Trial | null;
  /** A larger answer is refused. */
  readonly maxBytes: number;
}

/** An answer of any status, whole. */
export interface Answered {
  readonly head: ResponseHead;
  readonly body: Buffer;
}

/**
 * Asks an upstream and collects its answer.
 * @param done hears once, later: the answer, or why there is none
 * @returns a function that gives up: then `done` is not called
 */
export function ask(
  services: Services,
  call: Call,
  question: Question,
  done: (result: Answered | UpstreamFailure) => void,
): () => void {
  const { upstream, body, method, deadlines, maxBytes, trial } = question;
  const collector = new Collector({ services, call, maxBytes, trial }, done);
  const head = oneOffHead(call, upstream, question);
  const exchange = services.upstream.send(
    upstream.origin,
    { method, head, body, source: null },
    deadlines,
    collector,
  );
  collector.cancel = () => {
    trial?.leave();
    exchange.cancel();
  };
  return collector.cancel;
}

/** True for what `ask` gives when there is no answer. */
export function isFailure(result: Answered | UpstreamFailure): result is UpstreamFailure {
  return 'reason' in result;
}

/**
 * A question that came to an error or to no answer, as `Candidates` is told of it.
 * @param replayable asking again does no harm though the upstream has got it
 */
export function failedQuestion(result: Answered | UpstreamFailure, replayable: boolean): FailedAttempt {
  if (isFailure(result)) {
    const { reason, bytesSent } = result;
    return { reason, bytesSent, headRelayed: false, replayable };
  }
  const { status } = result.head;
  return { reason: 'error_answer', status, bytesSent: true, headRelayed: false, replayable };
}

/** Answers up to this size are not worth counting. */
const freeBytes = 256 * 1024;

interface Room {
  readonly services: Services;
  readonly call: Call;
  readonly maxBytes: number;
  readonly trial: Trial | null;
}

class Collector implements UpstreamHandler {
  cancel: () => void = () => {};
  readonly #room: Room;
  readonly #gather: Gather;
  readonly #done: (result: Answered | UpstreamFailure) => void;
  #head: ResponseHead | null = null;
  /** Bytes of the answer that there is room for. */
  #reserved = freeBytes;

  constructor(room: Room, done: (result: Answered | UpstreamFailure) => void) {
    this.#room = room;
    this.#gather = new Gather(room.maxBytes);
    this.#done = done;
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    if (head.status < 400) this.#room.trial?.answered();
    else this.#room.trial?.refused(head);
    this.#admit(head.contentLength);
  }

  onData(chunk: Buffer): boolean {
    if (this.#admit(this.#gather.length + chunk.length))
      this.#gather.add(chunk, this.#head?.contentLength ?? -1);
    return true;
  }

  onEnd(): void {
    this.#finish({ head: this.#head as ResponseHead, body: this.#gather.take() });
  }

  onFailure(failure: UpstreamFailure): void {
    this.#room.trial?.failed(failure.reason, failure.headSeen);
    this.#finish(failure);
  }

  #finish(result: Answered | UpstreamFailure): void {
    const { services, call } = this.#room;
    // The client has left: nobody else gives back what was taken since.
    if (call.accounted) shrinkReservation(services, call, 0);
    this.#done(result);
  }

  /** @returns false when so many bytes are too many, or there is no room for them: then it is over */
  #admit(needed: number): boolean {
    if (needed <= this.#reserved) return true;
    const { services, call, maxBytes } = this.#room;
    if (needed > maxBytes) {
      this.#give('answer_too_large', `the answer has more than ${maxBytes} bytes`);
      return false;
    }
    // The length is known from the head on, or the buffer doubles.
    const isKnown = needed === this.#head?.contentLength;
    const room = isKnown ? needed : Math.min(maxBytes, needed * 2);
    try {
      reserveBody(services, call, room - this.#reserved);
    } catch {
      this.#give('queue_full', 'there is no room for the answer');
      return false;
    }
    this.#reserved = room;
    return true;
  }

  #give(reason: UpstreamFailureReason, detail: string): void {
    this.#room.trial?.failed(reason, true);
    this.cancel();
    this.#finish({ reason, detail, bytesSent: true, headSeen: true });
  }
}
