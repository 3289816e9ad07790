import type { GatewayError } from '../errors.js';
import type { Usage } from './usage.js';

/** How a stream stood when its last byte had come. */
export interface StreamEnding {
  /** `complete`: the protocol's own end was there. `failed`: the upstream's last word was an error event. */
  readonly state: 'complete' | 'incomplete' | 'failed';
  readonly usage: Usage | null;
}

/** What a relay has to know of a protocol to pass its streams through untouched: each protocol brings one. */
export interface StreamManner {
  /**
   * Judges the events before anything was relayed.
   * @returns `silence` for comments only, `meaningful` for an event of the protocol, or the error that the
   * first event is or means
   */
  judgeStart(run: Buffer): 'silence' | 'meaningful' | GatewayError;
  /** Judges an ended stream by its last bytes (cut at `tailBytes`, so perhaps inside an event). */
  judgeEnd(tail: Buffer): StreamEnding;
  /**
   * Looks in whole events for the one that only a caller who asked for usage expects.
   * @returns its place in `run`, or null
   */
  findUsageEvent(run: Buffer): { readonly start: number; readonly end: number } | null;
  /** Usage in the body of an answer that was not streamed, or null. */
  usageOf(body: Buffer): Usage | null;
}
