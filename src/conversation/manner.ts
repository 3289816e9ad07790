import type { GatewayError } from '../errors.js';
import type { Usage } from './usage.js';

/** How a stream stood when its last byte had come. */
export interface StreamEnding {
  /** `complete`: the protocol's own end was there. `failed`: the upstream's last word was an error event. */
  readonly state: 'complete' | 'incomplete' | 'failed';
  readonly usage: Usage | null;
}

/** What was noted of a stream while it passed. */
export interface StreamFacts {
  /** What `usageAtStart` found. */
  readonly usageAtStart: Usage | null;
  /** `marksEnd` has said true. */
  readonly ended: boolean;
}

/** What a relay has to know of a protocol to pass its streams through untouched: each protocol brings one. */
export interface StreamManner {
  /**
   * Judges the events before anything was relayed.
   * @returns `silence` for comments only, `meaningful` for an event of the protocol, or the error that the
   * first event is or means
   */
  judgeStart(run: Buffer): 'silence' | 'meaningful' | GatewayError;
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
  /** Judges an ended stream by its last bytes (cut at `tailBytes`, so perhaps inside an event) and what was noted. */
  judgeEnd(tail: Buffer, facts: StreamFacts): StreamEnding;
  /**
   * Looks in whole events for the one that only a caller who asked for usage expects.
   * @returns its place in `run`, or null
   */
  findUsageEvent(run: Buffer): { readonly start: number; readonly end: number } | null;
  /** Usage in the body of an answer that was not streamed, or null. */
  usageOf(body: Buffer): Usage | null;
}

/** The manner of an endpoint that does not stream. */
export function wholeAnswers(usageOf: (body: Buffer) => Usage | null): StreamManner {
  return {
    judgeStart: () => 'meaningful',
    usageAtStart: null,
    marksEnd: null,
    judgeEnd: () => ({ state: 'complete', usage: null }),
    findUsageEvent: () => null,
    usageOf,
  };
}
