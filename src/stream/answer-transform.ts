import type { BrokenBy } from '../conversation/estimate-usage.js';
import type { Keep, KeptRecord } from '../conversation/kept-turns.js';
import type { StreamStart } from '../conversation/stream-rules.js';
import type { MadeMedia, Usage } from '../conversation/usage.js';
import type { GatewayError } from '../errors.js';

/** The state of a stream after the upstream's last byte. */
export interface TransformEnd {
  /** What remains to be sent, or null. */
  readonly last: Buffer | null;
  /** Why the stream is incomplete, or null. */
  readonly error: GatewayError | null;
}

/** An error that ends a stream before its upstream's last byte. */
export interface StreamFailure {
  readonly error: GatewayError;
  /**
   * True if the client has received the error, as the event of a translation. Otherwise the error is about the gateway's account,
   * and neither it nor anything after it was passed on.
   */
  readonly isTold: boolean;
}

/** The last events of a stream, or a whole answer, that wait until what a client may continue from is stored. */
export interface WaitingEnd {
  readonly keep: Keep;
  /** At least one. */
  readonly records: readonly KeptRecord[];
  /** The waiting bytes. An end mark that arrives meanwhile is appended. */
  end: Buffer;
  readonly isStream: boolean;
  /** The client has received the beginning of the event whose end waits. */
  readonly insideEvent: boolean;
}

/**
 * Converts one answer from the upstream's protocol to the client's: passed on untouched while its usage and errors are observed,
 * or translated. Each attempt has one.
 */
export interface AnswerTransform {
  /** A whole answer up to this size is sent in one piece, once it is complete. */
  readonly wholeBytes: number;
  /** Whether a larger answer or event may be passed on in pieces. Otherwise it is refused. */
  readonly divisible: boolean;
  /** Largest event that is handled whole. */
  readonly eventBytes: number;
  /** Whether the upstream decides if its answer is a stream. */
  readonly streamsUnasked: boolean;
  /** Whether error answers are passed on untouched. */
  readonly exactErrors: boolean;
  /** The stream has reached the end of its protocol. Nothing follows. */
  readonly isComplete: boolean;
  /** Whether the client's stream ends with `isComplete`, without waiting for the upstream to close its own. */
  readonly endsItself: boolean;
  /** The client's stream has ended in the middle of the upstream's, which is cancelled. */
  readonly isCut: boolean;
  /** Bytes in memory of a stream that has passed, including what is collected of it to be stored. */
  readonly gatheredBytes: number;
  /** Why `pass` returns nothing any more; null while it does. */
  readonly failure: StreamFailure | null;
  /**
   * The error with which the upstream's stream has ended. The client has received it, untouched or translated. Null if there is
   * none. Computed on each access, so it is only read at the end.
   */
  readonly passedError: GatewayError | null;
  /** What is stored of a whole answer before it is sent; null for nothing. For a stream see `waitingEnd`. */
  readonly keep: Keep | null;
  /** Set by the `pass` or `end` that reaches the end of a stream of which something is stored; else null. */
  readonly waitingEnd: WaitingEnd | null;
  /** The usage that the upstream has reported so far, or null. */
  readonly usage: Usage | null;
  /** A usage that the upstream has reported and no call can have had, so that it counts as not reported; null for none. */
  readonly implausible: Usage | null;
  /** Number of the next event, in protocols that number events; else 0. */
  readonly nextNumber: number;
  /** Seconds of audio in the answer, if it reports them; else 0. */
  readonly mediaSeconds: number;
  /** The media that the answer reports, available after its usage was read; absent for none. */
  readonly made?: MadeMedia | null;
  /**
   * Number of media in an answer that its client has received as far as it goes, if its usage does not report it; absent or null
   * if unknown.
   */
  readonly units?: number | null;
  /** Bytes of the answer that have passed; absent if nothing but tokens is charged. */
  readonly passed?: number;
  /**
   * Whether a transcript is one JSON object, whatever its type says, available after its usage was read; absent for other
   * answers.
   */
  readonly isObject?: boolean;
  /** Names of what the answer has lost in translation (`LeftOut`); absent if nothing is translated. */
  readonly lost?: readonly string[];

  /**
   * Judges whole events before anything was relayed. Returns `silence` for events without content. It keeps the events and
   * returns them with the first `pass`.
   */
  judge(run: Buffer): StreamStart;
  /**
   * @param isPart the last event of `run` continues after it: see `EventRuns.overlong`
   * @returns what to send for the events that were judged last, or for `run`; valid until the next call
   */
  pass(run: Buffer, isPart?: boolean): Buffer;
  /** Called after the last byte. */
  end(): TransformEnd;
  /**
   * Returns what the call has used, after the last of the answer has passed: as reported, or an estimate that is marked as such.
   * Null if there is nothing to count.
   */
  usageAtEnd(brokenBy: BrokenBy): Usage | null;
  /**
   * @param event the error event in the client's error format
   * @returns what to send at the end of a stream that broke off
   */
  lastWords(error: GatewayError, event: string): string;
  /** Observes a piece of a whole answer that is passed on in pieces. */
  note(chunk: Buffer): void;
  /**
   * @param body a whole successful answer
   * @returns what to send for it
   * @throws {GatewayError} for an answer that cannot be translated
   */
  whole(body: Buffer): Buffer | string;
}
