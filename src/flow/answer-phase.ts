import type { AnswerTransform } from '../stream/answer-transform.js';
import { type Beginning, Gather } from '../stream/gather.js';
import type { ResponseHead } from '../upstream/client.js';
import type { EventRuns } from '../wire/sse.js';

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

/**
 * How far an answer is: `waiting` for a head (-> `undecided`) -> `whole`, `opening` (for the first bytes) and `bytes` (passed on as they
 * come) or `events` -> `sent` (whole, and the client has not taken all of it) -> `over`.
 */
export type Phase =
  | { readonly name: 'waiting' }
  | Undecided
  | Whole
  | Bytes
  | Events
  | { readonly name: 'sent'; readonly head: ResponseHead }
  | { readonly name: 'over' };

export const waiting: Phase = { name: 'waiting' };
export const over: Phase = { name: 'over' };

/** An answer that has not shown by so many bytes what it is, is neither a stream nor JSON. */
const decidingBytes = 4096;

export function undecided(transform: AnswerTransform, head: ResponseHead): Undecided {
  return { name: 'undecided', transform, head, gathered: new Gather(decidingBytes) };
}
