import type { AnswerTransform } from '../stream/answer-transform.js';
import type { Beginning, Gather } from '../stream/gather.js';
import type { ResponseHead } from '../upstream/client.js';
import type { EventRuns } from '../wire/sse.js';

/** An answer whose head is there. */
export interface Answering {
  readonly transform: AnswerTransform;
  readonly head: ResponseHead;
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
 * How far an answer is: `waiting` for a head -> `whole`, `opening` (for the first bytes) and `bytes` (passed on as they
 * come) or `events` -> `sent` (whole, and the client has not taken all of it) -> `over`.
 */
export type Phase =
  | { readonly name: 'waiting' }
  | Whole
  | Bytes
  | Events
  | { readonly name: 'sent'; readonly head: ResponseHead }
  | { readonly name: 'over' };

export const waiting: Phase = { name: 'waiting' };
export const over: Phase = { name: 'over' };
