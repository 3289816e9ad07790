import { GatewayError } from '../errors.js';
import { type JsonObject, parseObject } from '../wire/json.js';
import { eventEnd, parseEvent } from '../wire/sse.js';
import { addUsage, type MadeMedia, type ServiceTier, type Usage, withCharges } from './usage.js';

/** State of a stream after its last byte. */
export interface StreamEnding {
  /** `complete`: the protocol's own end was present. `failed`: the last event was an error. */
  readonly state: 'complete' | 'incomplete' | 'failed';
  readonly usage: Usage | null;
  /** The error of a failed stream, as `StreamRules.judgeStart` returns it for a first event. Null unless it failed. */
  readonly error: GatewayError | null;
}

/** What a stream begins with: only comments (`silence`), an event of the protocol (`meaningful`), or an error. */
export type StreamStart = 'silence' | 'meaningful' | GatewayError;

/**
 * Makes a `StreamRules.judgeStart` that returns the verdict on the first event with data that is not judged `silence`.
 */
export function judgingEvents(
  judge: (event: string | null, data: string) => StreamStart,
): (run: Buffer) => StreamStart {
  return (run) => {
    for (let start = 0; start < run.length; ) {
      const end = eventEnd(run, start);
      const { event, data } = parseEvent(run.toString('utf8', start, end));
      const judged = data === null ? 'silence' : judge(event, data);
      if (judged !== 'silence') return judged;
      start = end;
    }
    return 'silence';
  };
}

/**
 * Makes a `StreamRules.judgeContent` from what judges single events.
 * @param opens whether an event of the protocol only opens an answer, and has none of its content
 */
export function judgingContent(
  judge: (event: string | null, data: string) => StreamStart,
  opens: (body: JsonObject) => boolean,
): (run: Buffer) => StreamStart {
  return judgingEvents((event, data) => {
    const judged = judge(event, data);
    if (judged !== 'meaningful') return judged;
    const body = parseObject(data);
    return body !== null && opens(body) ? 'silence' : judged;
  });
}

/** Makes the error for a stream that ended without its protocol's own end. */
export function endedEarly(): GatewayError {
  return new GatewayError(
    'upstream_error',
    "Connection lost: the upstream's stream ended before it was complete.",
    {
      cause: "ended without its protocol's end",
    },
  );
}

/** What was recorded of a stream while it passed. */
export interface StreamFacts {
  /** Result of `StreamRules.usageAtStart`. */
  readonly usageAtStart: Usage | null;
  /** Whether `StreamRules.marksEnd` has returned true. */
  readonly ended: boolean;
}

/** What the events of an answer say about its price, beyond its usage. */
export interface AnswerCharges {
  searches: number;
  /** Web queries, if reported. Pieces of a stream may repeat them, and each counts once. */
  readonly queries: Set<string>;
  /** Null for the standard tier, and until another one is named. */
  tier: ServiceTier | null;
  /** Usage by the upstream's own tools, or null. */
  ofTools: Usage | null;
  /** Number of calls that the upstream bills for this one. 0 if it does not say. */
  calls: number;
}

export function noCharges(): AnswerCharges {
  return { searches: 0, queries: new Set(), tier: null, ofTools: null, calls: 0 };
}

/** Adds the recorded charges to a usage. */
export function chargedUsage(usage: Usage, charges: AnswerCharges): Usage {
  const { searches, queries, tier, ofTools, calls } = charges;
  const ofCalls = calls === 0 ? usage : { ...usage, calls };
  // A usage that counts searches has all that are billed; items may be of some kinds alone.
  const counted = Math.max(usage.searches ?? 0, searches + queries.size);
  const charged = withCharges(ofCalls, { searches: counted, tier });
  return ofTools === null ? charged : { ...charged, ...addUsage(charged, ofTools) };
}

/** How the calls of an endpoint are metered where their upstreams do not report it. */
export interface Metering {
  /** Which tokens are estimated if none are reported. */
  readonly estimates: 'conversation' | 'input' | 'none';
  /** What an answer without a usage is estimated as, if `estimates` does not cover it. Null for nothing. */
  readonly unreported: 'transcript' | 'sound' | 'image' | null;
  /** Usage reported before the end of a stream is not final. */
  readonly grows: boolean;
  /**
   * Seconds of audio in an answer; 0 if unknown. The function is null if answers have no audio.
   * @param begin first bytes of the answer
   * @param length bytes of the whole answer
   * @param end last bytes of the answer
   */
  readonly seconds: ((begin: Buffer, length: number, end: Buffer) => number) | null;
}

/** Input and output are estimated. A stream reports its tokens when it ends. */
export const conversationMetering: Metering = {
  estimates: 'conversation',
  unreported: null,
  grows: false,
  seconds: null,
};
/** The same for streams that report their tokens all along. */
export const growingMetering: Metering = { ...conversationMetering, grows: true };
/** For answers without tokens. */
export const inputMetering: Metering = { ...conversationMetering, estimates: 'input' };
/** Only reported usage counts. */
export const reportedMetering: Metering = { ...conversationMetering, estimates: 'none' };

/** Counts the media in one answer as it passes, without storing any of it. */
export interface UnitCounter {
  /** Takes the next piece of an answer that is not streamed. */
  addWhole(piece: Buffer): void;
  /** Takes the next bytes of a stream. */
  addEvents(run: Buffer): void;
  /** Number of media in the answer so far. Null if unknown. */
  readonly units: number | null;
  /** Sum of the usages in a stream's events, each of one medium. Null if there are none. */
  readonly usage: Usage | null;
  /** Number of media in a stream that are complete, and of those that have begun to show. */
  readonly completed: number;
  readonly begun: number;
  /** Number of complete media in a stream that `usage` is of. */
  readonly reported: number;
}

/** Reads the last event of a stream, which repeats its answer. */
export interface StreamRepeat {
  /** Returns where that event begins in a run for which `StreamRules.marksEnd` is true. */
  start(run: Buffer): number;
  /** Returns the answer in that event. */
  answer(event: Buffer): unknown;
}

/** What a relay needs to know of a protocol to pass its streams through unchanged. Each protocol supplies one. */
export interface StreamRules {
  /**
   * Byte sequences that mark the protocol's own events and whole answers. They include quotes, so that no text in an
   * event can contain them. Data without any of them may be an error and is parsed. Empty if whole answers are short:
   * each is then parsed.
   */
  readonly marks: readonly Buffer[];
  /**
   * Whether an event without a mark is clearly one of the protocol's own and cannot contain an error, so that it is not
   * parsed. False is inconclusive. Absent if such events are rare.
   */
  readonly isHarmless?: (run: Buffer, start: number, end: number) => boolean;
  /** Judges the first events, before any is relayed. */
  judgeStart(run: Buffer): StreamStart;
  /**
   * Likewise, but events that only open an answer, and have none of its content, are `silence`, too. Absent if the first
   * event of a stream has content.
   */
  readonly judgeContent?: (run: Buffer) => StreamStart;
  /**
   * Returns how many bytes at the start of some whole events are events that only open an answer and may repeat its
   * request. Absent if those that do are short.
   */
  readonly openedBy?: (run: Buffer) => number;
  /** How to read a last event that repeats the whole answer, and perhaps its request. Absent if there is none. */
  readonly repeat?: StreamRepeat;
  /**
   * Returns usage that only the first events of a stream report, or null. The function is null if the last events
   * report everything.
   */
  readonly usageAtStart: ((run: Buffer) => Usage | null) | null;
  /**
   * Returns whether whole events include the protocol's last one. The function is null if the last bytes of a stream
   * suffice to decide.
   */
  readonly marksEnd: ((run: Buffer) => boolean) | null;
  /**
   * Returns the sequence number of the last numbered event in some bytes of a stream, or null. The function is null for
   * protocols that do not number their events.
   */
  readonly lastNumber: ((bytes: Buffer) => number | null) | null;
  /**
   * Judges an ended stream by what was recorded and its last bytes, cut at `tailBytes` and thus perhaps within an
   * event.
   */
  judgeEnd(tail: Buffer, facts: StreamFacts): StreamEnding;
  /** @returns whole events without the usage that only a caller who requested it expects */
  hideUsage(run: Buffer): Buffer;
  /** Returns the usage in the body of an answer that was not streamed, or null. */
  usageOf(body: Buffer): Usage | null;
  /**
   * A whole answer of at most this many bytes is buffered before it is sent, so that all of it is recorded. Absent: the
   * default.
   */
  readonly wholeBytes?: number;
  /** Records what whole events, or a whole answer, say about the price. Absent if the usage says it all. */
  readonly noteCharges?: (run: Buffer, charges: AnswerCharges) => void;
  /** Reads the kind of media in an answer from its last bytes. Absent if media have no price of their own. */
  readonly madeOf?: (end: Buffer) => MadeMedia;
  /** Creates a counter of an answer's media if its usage does not report their number. Absent for none. */
  readonly countUnits?: () => UnitCounter;
  readonly metering: Metering;
}

/** Defaults for protocols that need no other rules. */
export const plainRules = {
  usageAtStart: null,
  marksEnd: null,
  lastNumber: null,
  hideUsage: (run) => run,
} as const satisfies Partial<StreamRules>;

/**
 * Makes the rules of an endpoint that does not stream.
 * @param judgeStart returns the error in a body that is not an answer, like `StreamRules.judgeStart` for a first event
 */
export function wholeAnswers(
  usageOf: (body: Buffer) => Usage | null,
  metering: Metering,
  judgeStart: StreamRules['judgeStart'],
  marks: readonly string[] = [],
): StreamRules {
  return {
    ...plainRules,
    marks: marksOf(...marks),
    judgeStart,
    judgeEnd: () => ({ state: 'complete', usage: null, error: null }),
    usageOf,
    metering,
  };
}

/** Makes the value of `StreamRules.marks`. */
export function marksOf(...marks: readonly string[]): readonly Buffer[] {
  return marks.map((mark) => Buffer.from(mark));
}
