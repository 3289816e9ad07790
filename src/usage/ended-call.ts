import type { Protocol, Target } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';
import type { Outcome } from './entry.js';

/**
 * A call that has ended, as far as it is counted and kept. Sizes are in bytes, times in milliseconds of
 * `performance.now()`, 0 for what has not happened.
 */
export interface EndedCall {
  readonly exchange: {
    /** Below zero where the id is none of `requestIdOf`. */
    readonly number: number;
    readonly id: string;
    /** HTTP status of the answer; 0 where there was none. */
    readonly status: number;
    readonly bytesIn: number;
    readonly bytesOut: number;
  };
  readonly key: { readonly id: string; readonly groups: readonly string[] } | null;
  readonly route: { readonly protocol: Protocol | null } | null;
  readonly model: { readonly name: string } | null;
  readonly target: Target | null;
  readonly outcome: Outcome;
  readonly usage: Usage | null;
  /** An upstream has done what was asked for, or is at it. */
  readonly isServed: boolean;
  /** Of audio or video. */
  readonly mediaSeconds: number;
  /** Attempts after the first one. */
  readonly retries: number;
  readonly startedAt: number;
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly endedAt: number;
}

/** Stands for a time that there is not. */
export const none = -1;

/** Milliseconds until the first byte of the answer came, or `none`. */
export function firstByteMs({ startedAt, answeredAt }: Pick<EndedCall, 'startedAt' | 'answeredAt'>): number {
  return answeredAt > 0 ? answeredAt - startedAt : none;
}

/**
 * Milliseconds up to the request's leaving, or `none`: what comes after is the upstream's time and the client's.
 */
export function ownMs({
  startedAt,
  sentAt,
  retries,
}: Pick<EndedCall, 'startedAt' | 'sentAt' | 'retries'>): number {
  return sentAt > 0 && retries === 0 ? sentAt - startedAt : none;
}
