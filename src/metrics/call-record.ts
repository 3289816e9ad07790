import type { Usage } from '../conversation/usage.js';

export const outcomes = [
  'complete',
  'incomplete',
  'refused',
  'client_gone',
  'upstream_error',
  'interrupted',
  'attempt',
  'correction',
] as const;
export type CallOutcome = (typeof outcomes)[number];

/** The outcomes of calls, in the words of the manual. The last two are not calls. */
export const outcomeMeanings: Readonly<Record<CallOutcome, string>> = {
  complete: 'The whole answer was sent, or the session was closed normally.',
  incomplete: 'A session or task that did not reach its end.',
  refused:
    'An error that does not come from an upstream: of the client (400, 401, 429) or of the gateway (no memory, a fault), also within an answer.',
  client_gone: 'The client disconnected before its answer was complete.',
  upstream_error: 'An error or an incomplete answer of the upstream.',
  interrupted: 'Still running when its process ended; another process writes its line. Only in the ledger.',
  attempt:
    'Not a call: an attempt of a call that another attempt answered. The client does not pay for it. Only in the ledger.',
  correction:
    'Not a call: corrects the charge of an earlier one; its cost may be below zero. Only in the ledger.',
};

export function isCall(outcome: CallOutcome): boolean {
  return outcome !== 'attempt' && outcome !== 'correction';
}

/** An attempt that was sent, other than the one with which the call ended. */
export interface OtherAttempt {
  /** Like `CallRecord.target`. */
  readonly target: string;
  /** Its estimated usage; null for a failed attempt. */
  readonly usage: Usage | null;
  /** Like `CallRecord.paidNanoUsd`, for the estimated usage. */
  readonly paidNanoUsd: number;
}

/** An unknown cost. */
export const unknownCost = -Number.MAX_VALUE;

/** An unknown time. */
export const none = -1;

/**
 * An ended call: immutable texts and numbers for everything that counts, keeps or shows calls. Names of models, targets
 * and keys are those of the config, not the client's. It is created once, and not frozen by `Object.freeze`, which takes
 * 0.3 µs, a hundredth of a small call.
 */
export interface CallRecord {
  readonly id: string;
  /** Number of its id, see `requestIdOf`; negative if the id has none. */
  readonly number: number;
  /** As sent by the client, which is free to choose both. */
  readonly method: string;
  readonly path: string;
  /** The client's address; null if it is not recorded. */
  readonly client: string | null;
  readonly keyId: string | null;
  readonly groups: readonly string[];
  readonly protocol: string | null;
  readonly model: string | null;
  /** Upstream and model of the last target that the call was sent to. */
  readonly target: string | null;
  /** HTTP status of the answer; 0 without one. */
  readonly status: number;
  readonly outcome: CallOutcome;
  /** The kind of error sent to the client, and its cause as far as logs may contain it. */
  readonly error: string | null;
  readonly cause: string | null;
  /** Null if no tokens are counted. */
  readonly usage: Usage | null;
  /** Estimated tokens of attempts cancelled in favor of another, which the call is not charged for; null for none. */
  readonly givenUp: { readonly input: number; readonly output: number } | null;
  /** Its attempts that were replaced by others; null for none. */
  readonly otherAttempts: readonly OtherAttempt[] | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Seconds of audio or video served. */
  readonly mediaSeconds: number;
  /** Characters of the text that was spoken. */
  readonly characters: number;
  /** Names of members that a translation did not pass on; see `LeftOut`. */
  readonly leftOut: readonly string[];
  /** The same of the answer. */
  readonly lostInAnswer: readonly string[];
  /** Attempts after the first. */
  readonly retries: number;
  /** Multiplier of a price per call: the number of images or videos, else 1; 0 for a call not served. */
  readonly units: number;
  /** The charge in whole nano-dollars (1e-9 USD); 0 for none, negative for a refund. */
  readonly costNanoUsd: number;
  /** The operator's cost, or `unknownCost`; negative for a refund. */
  readonly paidNanoUsd: number;
  /** Whether it gets a line in the ledger. */
  readonly isMetered: boolean;
  /** Whether its ledger line and metrics follow later, in a record of their own, since its usage is not known yet. */
  readonly endsLater: boolean;
  /** Milliseconds of `performance.now()`. */
  readonly endedAt: number;
  readonly durationMs: number;
  /** From the start of the call to the head of the upstream's answer, or to a session's first message; or `none`. */
  readonly firstByteMs: number;
  /** From the start until the request was sent, since later time is the upstream's and the client's; or `none`. */
  readonly ownMs: number;
}

/** The record of another attempt of an ended call. */
export function attemptRecord(call: CallRecord, { target, usage, paidNanoUsd }: OtherAttempt): CallRecord {
  return {
    ...call,
    target,
    usage,
    outcome: 'attempt',
    status: 0,
    units: 0,
    costNanoUsd: 0,
    paidNanoUsd,
    mediaSeconds: 0,
    characters: 0,
    bytesIn: 0,
    bytesOut: 0,
    otherAttempts: null,
  };
}
