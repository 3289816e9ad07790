import type { BrokenBy } from '../conversation/estimate-usage.js';
import type { Keep, KeptRecord } from '../conversation/kept-turns.js';
import type { StreamStart } from '../conversation/stream-rules.js';
import type { MadeMedia, Usage } from '../conversation/usage.js';
import type { GatewayError } from '../errors.js';

/** How a stream stands when the upstream's last byte has been taken. */
export interface TransformEnd {
  /** What is still to be sent, or null. */
  readonly last: Buffer | null;
  /** Why the stream is not whole, or null. */
  readonly error: GatewayError | null;
}

/** An error by which a stream ends before its upstream's last byte. */
export interface StreamFailure {
  readonly error: GatewayError;
  /**
   * The client has got it: a translation has given out its error event. Else an event would have told the client of the
   * gateway's account, and neither it nor what is behind it was given out.
   */
  readonly isTold: boolean;
}

/** The last events of a stream, or a whole answer, which wait until what a client may go on from by their word is kept. */
export interface WaitingEnd {
  readonly keep: Keep;
  /** At least one. */
  readonly records: readonly KeptRecord[];
  /** A mark that comes behind it while it waits is added. */
  end: Buffer;
  readonly isStream: boolean;
}

/**
 * Takes one answer from the upstream's protocol to the client's: untouched and observed for its usage and errors, or
 * translated. One for each attempt.
 */
export interface AnswerTransform {
  /** A whole answer up to so many bytes leaves in one piece, when all of it is there. */
  readonly wholeBytes: number;
  /** A larger whole answer, or a larger event, may be passed on in pieces; else it is refused. */
  readonly divisible: boolean;
  /** An event may have so many bytes before that. */
  readonly eventBytes: number;
  /** The upstream decides whether its answer is a stream. */
  readonly streamsUnasked: boolean;
  /** Error answers reach the client as they came. */
  readonly exactErrors: boolean;
  /** The stream has come to its protocol's own end, and nothing more is to follow. */
  readonly isComplete: boolean;
  /** The client's stream ends with `isComplete`, whether or not the upstream closes its own; else with the upstream's. */
  readonly endsItself: boolean;
  /** The client's stream has ended in the middle of the upstream's, which is left there. */
  readonly isCut: boolean;
  /** Bytes that it keeps of a stream that has passed, with what is gathered of it to be kept under an id. */
  readonly gatheredBytes: number;
  /** Why `pass` gives out nothing more; null as long as it does. */
  readonly failure: StreamFailure | null;
  /**
   * The error that the upstream's stream has ended with, by what has passed: the client has got it, as it came or
   * translated. Null as long as there is none. It is read anew each time: to be asked for at the end.
   */
  readonly passedError: GatewayError | null;
  /** What is kept of a whole answer before it leaves; null for nothing. A stream's is in `waitingEnd`. */
  readonly keep: Keep | null;
  /** Set by the `pass` or `end` that comes to the end of a stream of which something is kept; else null. */
  readonly waitingEnd: WaitingEnd | null;
  /** What the upstream has said of the answer's usage so far, or null. */
  readonly usage: Usage | null;
  /** Number of the event that follows those that have passed, in protocols that number them; else 0. */
  readonly nextNumber: number;
  /** Seconds of audio in the answer, as far as it tells; else 0. */
  readonly mediaSeconds: number;
  /** What the answer has told of the media in it, once its usage was asked for; absent for nothing. */
  readonly made?: MadeMedia | null;
  /** How many media a whole answer has brought, where its usage does not say; absent or null where nobody knows. */
  readonly units?: number | null;
  /** Names of what the answer has lost in translation (`LeftOut`); absent where nothing is translated. */
  readonly lost?: readonly string[];

  /**
   * Judges whole events before anything was relayed; `silence` for what says nothing yet. What it has seen it keeps,
   * and gives out with the first `pass`.
   */
  judge(run: Buffer): StreamStart;
  /**
   * @param isPart the last event of `run` goes on behind it: see `EventRuns.overlong`
   * @returns what leaves for the whole events that were judged last, or for `run`; valid until the next call
   */
  pass(run: Buffer, isPart?: boolean): Buffer;
  /** After the last byte. */
  end(): TransformEnd;
  /**
   * What the call has used, once nothing of the answer passes any more: as it was reported, or, marked as such, as it is
   * thought to be. Null where there is nothing to count.
   */
  usageAtEnd(brokenBy: BrokenBy): Usage | null;
  /**
   * @param event the error event as the client's error format has it
   * @returns the last words of a stream that breaks off
   */
  lastWords(error: GatewayError, event: string): string;
  /** Takes note of a piece of a whole answer that is passed on as it comes. */
  note(chunk: Buffer): void;
  /**
   * @param body a whole successful answer
   * @returns what leaves for it
   * @throws {GatewayError} for an answer that cannot be translated
   */
  whole(body: Buffer): Buffer | string;
}
