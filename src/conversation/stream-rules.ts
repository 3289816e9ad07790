import { GatewayError } from '../errors.js';
import { eventEnd, parseEvent } from '../wire/sse.js';
import { addUsage, type MadeMedia, type ServiceTier, type Usage, withCharges } from './usage.js';

/** How a stream stood when its last byte had come. */
export interface StreamEnding {
  /** `complete`: the protocol's own end was there. `failed`: the upstream's last word was an error event. */
  readonly state: 'complete' | 'incomplete' | 'failed';
  readonly usage: Usage | null;
  /** What that error means, as `StreamRules.judgeStart` tells it of a first event; null where the stream has not failed. */
  readonly error: GatewayError | null;
}

/**
 * What the first events of a stream are: `silence` for comments only, `meaningful` for an event of the protocol, or the
 * error that the first one is or means.
 */
export type StreamStart = 'silence' | 'meaningful' | GatewayError;

/** Makes a `StreamRules.judgeStart` that goes by the first event with data which is not passed over as silence. */
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

/** The failure of a stream whose last byte has come, and not its protocol's own end. */
export function endedEarly(): GatewayError {
  return new GatewayError('upstream_error', "The upstream's stream ended before it was complete.", {
    cause: "ended without its protocol's end",
  });
}

/** What was noted of a stream while it passed. */
export interface StreamFacts {
  /** What `usageAtStart` found. */
  readonly usageAtStart: Usage | null;
  /** `marksEnd` has said true. */
  readonly ended: boolean;
}

/** What the events of an answer say of its price, where its usage does not say all. */
export interface AnswerCharges {
  searches: number;
  /** Of the web, as far as they are told: pieces of a stream may repeat them, and each counts once. */
  readonly queries: Set<string>;
  /** Null for the standard one, and until another is named. */
  tier: ServiceTier | null;
  /** What tools of the upstream have used; null for nothing. */
  ofTools: Usage | null;
  /** For how many calls it is billed; 0 where it does not say. */
  calls: number;
}

export function noCharges(): AnswerCharges {
  return { searches: 0, queries: new Set(), tier: null, ofTools: null, calls: 0 };
}

/** Usage with what was noted beside it. */
export function chargedUsage(usage: Usage, charges: AnswerCharges): Usage {
  const { searches, queries, tier, ofTools, calls } = charges;
  const ofCalls = calls === 0 ? usage : { ...usage, calls };
  const charged = withCharges(ofCalls, { searches: searches + queries.size, tier });
  return ofTools === null ? charged : { ...charged, ...addUsage(charged, ofTools) };
}

/** What the calls of an endpoint consume, as far as their upstreams do not say. */
export interface Metering {
  /** Tokens that are estimated where none are reported. */
  readonly estimates: 'conversation' | 'input' | 'none';
  /** Output of a stream for which nothing else is estimated, and which breaks off before its report; null for none. */
  readonly broken: 'text' | 'medium' | null;
  /** What a stream reports before its end is not all yet. */
  readonly grows: boolean;
  /**
   * Seconds of audio in an answer, 0 where they are not known; null in place of the function where answers have none.
   * @param begin its first bytes
   * @param length of the whole of it
   * @param end its last bytes
   */
  readonly seconds: ((begin: Buffer, length: number, end: Buffer) => number) | null;
}

/** Input and output are counted, and a stream says how many tokens they are when it ends. */
export const conversationMetering: Metering = {
  estimates: 'conversation',
  broken: null,
  grows: false,
  seconds: null,
};
/** The same for streams that say it all along. */
export const growingMetering: Metering = { ...conversationMetering, grows: true };
/** The answer is made of no tokens. */
export const inputMetering: Metering = { ...conversationMetering, estimates: 'input' };
/** Only what an upstream reports counts. */
export const reportedMetering: Metering = { ...conversationMetering, estimates: 'none' };

/** Counts the media of one answer as it passes, and keeps nothing of it. */
export interface UnitCounter {
  /** Takes the next piece of an answer that is no stream. */
  addWhole(piece: Buffer): void;
  /** Takes the next bytes of a stream. */
  addEvents(run: Buffer): void;
  /** How many the answer has brought; null where that is not known. */
  readonly units: number | null;
}

/** What a relay has to know of a protocol to pass its streams through untouched: each protocol brings one. */
export interface StreamRules {
  /**
   * Beginnings of what the protocol's own events and whole answers have, quotes included, which no text in them can hold.
   * What has none of them may be an error in their place. None where whole answers are short: each is looked into.
   */
  readonly marks: readonly Buffer[];
  /**
   * Whether an event without a mark plainly is one of the protocol's own all the same, with no place for an error: it is
   * not parsed to see that. Of any other event false says nothing. Absent where such events are rare.
   */
  readonly isHarmless?: (run: Buffer, start: number, end: number) => boolean;
  /**
   * Judges the events before anything was relayed.
   */
  judgeStart(run: Buffer): StreamStart;
  /**
   * Usage that the first events of a stream name and its last ones do not, or null. Null in place of the function for
   * protocols whose last events say all.
   */
  readonly usageAtStart: ((run: Buffer) => Usage | null) | null;
  /**
   * Whether whole events hold the protocol's last one. Null in place of the function where the last bytes of a stream
   * are enough to tell.
   */
  readonly marksEnd: ((run: Buffer) => boolean) | null;
  /**
   * Number of the last event in some bytes of a stream that has one, or null. Null in place of the function for protocols
   * that do not number their events.
   */
  readonly lastNumber: ((bytes: Buffer) => number | null) | null;
  /** Judges an ended stream by its last bytes (cut at `tailBytes`, so perhaps inside an event) and what was noted. */
  judgeEnd(tail: Buffer, facts: StreamFacts): StreamEnding;
  /** @returns whole events without what only a caller who asked for usage expects */
  hideUsage(run: Buffer): Buffer;
  /** Usage in the body of an answer that was not streamed, or null. */
  usageOf(body: Buffer): Usage | null;
  /** A whole answer of up to so many bytes is gathered before it leaves, so that all of it is noted; absent for the usual. */
  readonly wholeBytes?: number;
  /** Takes note of what whole events, or a whole answer, say of the price. Absent where the usage says all. */
  readonly noteCharges?: (run: Buffer, charges: AnswerCharges) => void;
  /** What the last bytes of an answer tell of the media in it; absent where that has no price of its own. */
  readonly madeOf?: (end: Buffer) => MadeMedia;
  /** Makes what counts the media of an answer, where its usage does not say how many they are. Absent for none. */
  readonly countUnits?: () => UnitCounter;
  readonly metering: Metering;
}

/** What holds of a protocol that says nothing else. */
export const plainRules = {
  usageAtStart: null,
  marksEnd: null,
  lastNumber: null,
  hideUsage: (run) => run,
} as const satisfies Partial<StreamRules>;

/**
 * The rules of an endpoint that does not stream.
 * @param judgeStart tells of what stands in place of an answer which error it is, as of the first event of a stream
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

/** Makes the bytes that `StreamRules.marks` are. */
export function marksOf(...marks: readonly string[]): readonly Buffer[] {
  return marks.map((mark) => Buffer.from(mark));
}
