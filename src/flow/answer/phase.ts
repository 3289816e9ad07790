import type { StreamStart } from '../../conversation/stream-rules.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import type { Beginning, Gather } from '../../stream/gather.js';
import type { ResponseHead } from '../../upstream/types.js';
import { parseJson } from '../../wire/json.js';
import { EventRuns, parseEvent } from '../../wire/sse.js';

/*
 * The phases of an answer that is relayed: phase, event, next phase. `Relay` and its ends (`AnswerEnds`) change the phase, by
 * the kind of the answer (`content`).
 *
 * waiting     its head arrives                         `undecided`, `whole`, `opening` or `events` (`phaseByHead`)
 * undecided   its first bytes show its kind            `events`, `whole` or `opening` (`decide`)
 * opening     its first bytes are known to be harmless `bytes`
 * whole       it is too large to be gathered           `bytes`, if it may be sent in pieces
 *             it has arrived and is sent               `keeping`, `sent` or `ended`
 * events      its protocol's end, or the upstream's    `keeping` or `ended`
 * bytes       it has ended                             `ended`
 * keeping     what its end promises is stored          `ended`; from `whole` through `sent`
 * sent        the client has read all of it            `ended`
 * any         given up, broken off, client disconnects `ended`
 * ended       another attempt is made (`reset`)        `waiting`
 */

/** An answer whose head has arrived. */
export interface Answering {
  readonly transform: AnswerTransform;
  readonly head: ResponseHead;
}

/** An answer to a request for a stream whose head does not say whether it is one. Its first bytes decide. */
export interface Undecided extends Answering {
  readonly name: 'undecided';
  readonly gathered: Gather;
}

/** An answer that is gathered and sent as a whole. */
export interface Whole extends Answering {
  readonly name: 'whole';
  /** The largest size that is gathered. */
  readonly mostBytes: number;
  /** Null before its first piece, which may be the whole answer. */
  gathered: Gather | null;
}

/** An answer that is passed on as it arrives. */
export interface Bytes extends Answering {
  readonly name: 'opening' | 'bytes';
  readonly beginning: Beginning;
}

/**
 * A stream that is passed on in complete events. Until it is known to be one that is relayed, its events are gathered and
 * judged.
 */
export class Events implements Answering {
  readonly name = 'events';
  readonly transform: AnswerTransform;
  readonly head: ResponseHead;
  readonly runs: EventRuns;

  constructor(transform: AnswerTransform, head: ResponseHead) {
    this.transform = transform;
    this.head = head;
    this.runs = new EventRuns(transform.eventBytes);
  }

  /**
   * Judges the beginning of a stream of which nothing was passed on. Part of an event cannot be judged; a very large one is
   * treated as a good event.
   */
  judge(run: Buffer): StreamStart {
    return this.runs.overlong ? 'meaningful' : this.transform.judge(run);
  }

  /** Returns what follows the complete events at the stream's end: see `lastEvent`. */
  last(): Buffer | null {
    return lastEvent(this.runs);
  }
}

/** The whole answer has arrived, and its end waits until what it promises is stored. */
interface Keeping {
  readonly name: 'keeping';
  /** The client has received whole events of a stream. */
  readonly betweenEvents: boolean;
  /** The upstream's own stream, which may have more after its end; else null. */
  readonly behind: Events | null;
}

/** How far an answer has progressed. */
export type Phase =
  | { readonly name: 'waiting' }
  | Undecided
  | Whole
  | Bytes
  | Events
  | Keeping
  | { readonly name: 'sent'; readonly head: ResponseHead }
  | { readonly name: 'ended' };

export const waiting: Phase = { name: 'waiting' };
export const ended: Phase = { name: 'ended' };

/** Whether keep-alives may be sent. They are allowed only between the events of a stream. */
export function mayKeepAlive(phase: Phase, transform: AnswerTransform | null): boolean {
  if (phase.name === 'waiting') return transform?.streamsUnasked !== true;
  return phase.name === 'events' ? !phase.runs.overlong : phase.name === 'keeping' && phase.betweenEvents;
}

/** Some upstreams omit the blank line after their last event. An event that was cut short does not count as one. */
function isWholeEvent(rest: Buffer): boolean {
  const { data } = parseEvent(rest.toString('utf8'));
  if (data === null || data === '[DONE]') return data !== null;
  return parseJson(data) !== undefined;
}

/**
 * Returns the last event of a stream whose upstream omits the blank line after it, or null. An incomplete event is dropped.
 */
export function lastEvent(runs: EventRuns): Buffer | null {
  const rest = runs.rest();
  return rest !== null && isWholeEvent(rest) ? Buffer.concat([rest, Buffer.from('\n\n')]) : null;
}
