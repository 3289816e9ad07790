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

/** How calls end, as the manual says it. The last two are no calls. */
export const outcomeMeanings: Readonly<Record<CallOutcome, string>> = {
  complete: 'The whole answer was sent, or the session was closed in order.',
  incomplete: 'A session or task that did not come to its end.',
  refused:
    'An error that no upstream has told: of the caller (400, 401, 429), or of the gateway (no memory, a fault), also in the middle of an answer.',
  client_gone: 'The client left before its answer was whole.',
  upstream_error: 'An error or a broken answer of the upstream.',
  interrupted: 'It went on when its process ended, and is told by another process. In the ledger alone.',
  attempt:
    'No call: an attempt of one that another attempt has answered, which its client does not pay. In the ledger alone.',
  correction:
    'No call: puts right what an earlier one was charged; its cost may be below zero. In the ledger alone.',
};

export function isCall(outcome: CallOutcome): boolean {
  return outcome !== 'attempt' && outcome !== 'correction';
}

/** An attempt of a call that was sent, and is not the one that the call ended with. */
export interface OtherAttempt {
  /** As `CallRecord.target`. */
  readonly target: string;
  /** What it is thought to have used; null for one that has failed. */
  readonly usage: Usage | null;
  /** As `CallRecord.paidNanoUsd`, of what it is thought to have used. */
  readonly paidNanoUsd: number;
}

/** Stands for a cost that nobody knows. */
export const unknownCost = -Number.MAX_VALUE;

/** Stands for a time that is not known. */
export const none = -1;

/**
 * A call that has ended: words and numbers that do not change any more, for all who count, keep or show calls. Names of
 * models, targets and keys are those of the config, whatever a client has said. It is made once, and not frozen by
 * `Object.freeze`, which takes 0.3 µs, a hundredth of a small call.
 */
export interface CallRecord {
  readonly id: string;
  /** Of its id, see `requestIdOf`; below zero where that has none. */
  readonly number: number;
  /** As the client has sent them, which is free to choose both. */
  readonly method: string;
  readonly path: string;
  /** The client's address; null where nobody wants to know it. */
  readonly client: string | null;
  readonly keyId: string | null;
  readonly groups: readonly string[];
  readonly protocol: string | null;
  readonly model: string | null;
  /** Upstream and model there, of the last one that was asked. */
  readonly target: string | null;
  /** HTTP status of the answer; 0 where there was none. */
  readonly status: number;
  readonly outcome: CallOutcome;
  /** The kind of error that the client was told, and what its cause was as far as a log may have it. */
  readonly error: string | null;
  readonly cause: string | null;
  /** Null where no tokens are counted. */
  readonly usage: Usage | null;
  /** Estimated tokens of attempts that were cancelled for another one, which the call does not pay; null for none. */
  readonly givenUp: { readonly input: number; readonly output: number } | null;
  /** Its attempts that others have taken the place of; null for none. */
  readonly otherAttempts: readonly OtherAttempt[] | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Of audio or video that was served. */
  readonly mediaSeconds: number;
  /** Names of members that a translation did not pass on; see `LeftOut`. */
  readonly leftOut: readonly string[];
  /** The same of the answer. */
  readonly lostInAnswer: readonly string[];
  /** Attempts after the first one. */
  readonly retries: number;
  /** How many times a price per call counts: the number of its images or videos, else 1; 0 where it was not served. */
  readonly units: number;
  /** What it is charged, in whole nano-dollars (1e-9 USD); 0 where nothing is, and below zero for what is given back. */
  readonly costNanoUsd: number;
  /** What it has cost whoever runs the gateway, or `unknownCost`; below zero for what is given back. */
  readonly paidNanoUsd: number;
  /** It has a line in the ledger. */
  readonly isMetered: boolean;
  /** Its line, and its place in the metrics, come later, with a record of their own: what it uses is not known yet. */
  readonly endsLater: boolean;
  /** Milliseconds of `performance.now()`. */
  readonly endedAt: number;
  readonly durationMs: number;
  /** From the start of the call to the head of the upstream's answer, of a session to its first message; or `none`. */
  readonly firstByteMs: number;
  /** Up to the leaving of the request, since what comes after is the upstream's time and the client's; or `none`. */
  readonly ownMs: number;
}

/** The line of an attempt of a call that has ended. */
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
    bytesIn: 0,
    bytesOut: 0,
    otherAttempts: null,
  };
}
