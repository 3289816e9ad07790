import type { OwnSecrets } from '../../config/types.js';
import type { StreamStart } from '../../conversation/stream-rules.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { Beginning, beginningBytes, Gather } from '../../stream/gather.js';
import type { ResponseHead } from '../../upstream/types.js';
import { parseJson } from '../../wire/json.js';
import { EventRuns, parseEvent } from '../../wire/sse.js';
import { isEventStream, isMedia, kindOfAnswer } from './content.js';

/*
 * The phases of an answer that is relayed, and what moves it on. `Relay` does, and its ends (`AnswerEnds`).
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

/** Error answers are taken whole up to this size: only then is it known that they are JSON. */
const wholeErrorBytes = 1024 * 1024;

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
  readonly gathered: Gather;
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

/** An answer that has not shown by so many bytes what it is, is neither a stream nor JSON. */
const decidingBytes = 4096;

/** How an answer is taken that is of use, by its head. */
export function takenAs(
  transform: AnswerTransform,
  head: ResponseHead,
  { streamed, secrets }: { readonly streamed: boolean; readonly secrets: OwnSecrets },
): Phase {
  if (head.status >= 400) return { name: 'whole', transform, head, gathered: new Gather(wholeErrorBytes) };
  if (!streamed) return unstreamed(transform, head, secrets);
  if (isEventStream(head)) return new Events(transform, head);
  return { name: 'undecided', transform, head, gathered: new Gather(decidingBytes) };
}

/** What may be known of an answer that is passed on as it comes, before it is. */
export function beginningOf(head: ResponseHead, secrets: OwnSecrets): Beginning {
  return new Beginning(secrets, isMedia(head) ? beginningBytes : Number.POSITIVE_INFINITY);
}

function unstreamed(transform: AnswerTransform, head: ResponseHead, secrets: OwnSecrets): Phase {
  if (leavesWhole(head, transform))
    return { name: 'whole', transform, head, gathered: new Gather(transform.wholeBytes) };
  return { name: 'opening', transform, head, beginning: beginningOf(head, secrets) };
}

/**
 * Tells by its first bytes what an answer is that should be a stream and is not called one.
 * @param mayBeJson it may be handed on as JSON
 * @returns how it is taken from now on and what of it has come, null while more is needed; the phase is null for an
 * answer of no use
 */
export function decide(
  { transform, head, gathered }: Undecided,
  chunk: Buffer,
  { isWhole, mayBeJson, secrets }: { isWhole: boolean; mayBeJson: boolean; secrets: OwnSecrets },
): { readonly phase: Phase | null; readonly first: Buffer } | null {
  const isHeld = gathered.add(chunk, -1);
  const first = isHeld ? gathered.take() : chunk;
  const kind = isHeld ? kindOfAnswer(first, isWhole) : 'other';
  if (kind === 'events') return { phase: new Events(transform, head), first };
  if (kind === 'json' && mayBeJson) return { phase: unstreamed(transform, head, secrets), first };
  if (kind !== null) return { phase: null, first };
  gathered.add(first, -1);
  return null;
}

/** Whether a good answer is kept until all of it is there; else it leaves piece by piece. */
function leavesWhole(head: ResponseHead, transform: AnswerTransform): boolean {
  return head.contentLength <= transform.wholeBytes && !(transform.divisible && isMedia(head));
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
