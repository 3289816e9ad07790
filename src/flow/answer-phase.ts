import type { OwnSecrets } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import { type Beginning, Gather } from '../stream/gather.js';
import type { ResponseHead } from '../upstream/client.js';
import { EventRuns } from '../wire/sse.js';
import { beginningOf, isEventStream, kindOfAnswer, leavesWhole } from './judge-answer.js';

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

/** It is passed on in whole events. */
export interface Events extends Answering {
  readonly name: 'events';
  readonly runs: EventRuns;
}

/** All of it is there, and its end waits until what it promises is kept. */
export interface Keeping {
  readonly name: 'keeping';
  readonly isStream: boolean;
  /** The upstream's own stream, behind whose end there may come more; else null. */
  readonly behind: Events | null;
}

/**
 * How far an answer is. From `waiting` for its head it comes, some by way of `undecided`, to one of three: `whole`,
 * `opening` and then `bytes`, or `events`. After that it may be `keeping` what its end promises, or `sent` (whole, and the
 * client has not taken all of it), and at last it is `over`.
 */
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

/** Whether signs of life may be sent: they belong between the events of a stream alone. */
export function mayShowLife(phase: Phase, transform: AnswerTransform | null): boolean {
  if (phase.name === 'waiting') return transform?.streamsUnasked !== true;
  return phase.name === 'events' ? !phase.runs.overlong : phase.name === 'keeping' && phase.isStream;
}

/** An answer that has not shown by so many bytes what it is, is neither a stream nor JSON. */
const decidingBytes = 4096;

/** A stream whose beginning was judged before it was chosen. */
export interface BegunStream {
  readonly head: ResponseHead;
  /** Holds the part of an event that has come behind `run`. */
  readonly runs: EventRuns;
  /** The events that were judged last; null where none is whole. */
  readonly run: Buffer | null;
  readonly verdict: 'silence' | 'meaningful' | GatewayError;
}

/** How an answer is taken that is of use, by its head. */
export function takenAs(
  transform: AnswerTransform,
  head: ResponseHead,
  { streamed, secrets }: { readonly streamed: boolean; readonly secrets: OwnSecrets },
): Phase {
  if (head.status >= 400) return { name: 'whole', transform, head, gathered: new Gather(wholeErrorBytes) };
  if (!streamed) return unstreamed(transform, head, secrets);
  if (isEventStream(head)) return eventsOf(transform, head);
  return { name: 'undecided', transform, head, gathered: new Gather(decidingBytes) };
}

function eventsOf(transform: AnswerTransform, head: ResponseHead): Events {
  return { name: 'events', transform, head, runs: new EventRuns(transform.eventBytes) };
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
  if (kind === 'events') return { phase: eventsOf(transform, head), first };
  if (kind === 'json' && mayBeJson) return { phase: unstreamed(transform, head, secrets), first };
  if (kind !== null) return { phase: null, first };
  gathered.add(first, -1);
  return null;
}
