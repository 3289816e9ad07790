import type { StreamStart } from '../../conversation/stream-rules.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import type { Beginning, Gather } from '../../stream/gather.js';
import type { ResponseHead } from '../../upstream/types.js';
import { parseJson } from '../../wire/json.js';
import { EventRuns, parseEvent } from '../../wire/sse.js';

/*
 * The phases of an answer that is relayed, and what moves it on. `Relay` does, and its ends (`AnswerEnds`), by what the answer
 * is (`content`).
 *
 * waiting     its head comes                           `undecided`, `whole`, `opening` or `events` (`takenAs`)
 * undecided   its first bytes tell what it is          `events`, `whole` or `opening` (`decide`)
 * opening     its first bytes are known to be harmless `bytes`
 * whole       it is too long to be collected           `bytes`, where it may pass in pieces
 *             it has come, and leaves                  `keeping`, `sent` or `over`
 * events      its protocol's end, or the upstream's    `keeping` or `over`
 * bytes       it has ended                             `over`
 * keeping     what its end promises is stored          `over`; what was whole by way of `sent`
 * sent        the client has taken all of it           `over`
 * any         given up, broken off, the client leaves  `over`
 * over        another attempt is made (`reset`)        `waiting`
 */

/** An answer whose head is there. */
export interface Answering {
  readonly transform: AnswerTransform;
  readonly head: ResponseHead;
}

/** A stream was asked for, and its first bytes have to tell whether it is one: its head does not. */
export interface Undecided extends Answering {
  readonly name: 'undecided';
  readonly gathered: Gather;
}

/** It is collected, and leaves at once. */
export interface Whole extends Answering {
  readonly name: 'whole';
  /** It may have. */
  readonly mostBytes: number;
  /** Null before its first piece, which may be all of it. */
  gathered: Gather | null;
}

/** It is passed on as it comes. */
export interface Bytes extends Answering {
  readonly name: 'opening' | 'bytes';
  readonly beginning: Beginning;
}

/** It is passed on in whole events, or, before it is known whether it will be, collected and judged in them. */
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
   * Judges the beginning of a stream of which nothing has passed. Part of an event cannot be judged; one so large is taken
   * for what was asked for.
   */
  judge(run: Buffer): StreamStart {
    return this.runs.overlong ? 'meaningful' : this.transform.judge(run);
  }

  /** What follows those that were whole, at the stream's end: see `lastEvent`. */
  last(): Buffer | null {
    return lastEvent(this.runs);
  }
}

/** All of it is there, and its end waits until what it promises is kept. */
interface Keeping {
  readonly name: 'keeping';
  readonly isStream: boolean;
  /** The upstream's own stream, behind whose end there may come more; else null. */
  readonly behind: Events | null;
}

/** How far an answer is. */
export type Phase =
  | { readonly name: 'waiting' }
  | Undecided
  | Whole
  | Bytes
  | Events
  | Keeping
  | { readonly name: 'sent'; readonly head: ResponseHead }
  | { readonly name: 'over' };

export const waiting: Phase = { name: 'waiting' };
export const over: Phase = { name: 'over' };

/** Whether keep-alives may be sent: they belong between the events of a stream alone. */
export function mayKeepAlive(phase: Phase, transform: AnswerTransform | null): boolean {
  if (phase.name === 'waiting') return transform?.streamsUnasked !== true;
  return phase.name === 'events' ? !phase.runs.overlong : phase.name === 'keeping' && phase.isStream;
}

/** Some upstreams leave out the blank line behind their last event; what was cut short is no event. */
function isWholeEvent(rest: Buffer): boolean {
  const { data } = parseEvent(rest.toString('utf8'));
  if (data === null || data === '[DONE]') return data !== null;
  return parseJson(data) !== undefined;
}

/** The event that a stream ends with whose upstream leaves out the blank line behind it, or null. What is none is dropped. */
export function lastEvent(runs: EventRuns): Buffer | null {
  const rest = runs.rest();
  return rest !== null && isWholeEvent(rest) ? Buffer.concat([rest, Buffer.from('\n\n')]) : null;
}
