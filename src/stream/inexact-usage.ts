import { estimatedUsage } from '../conversation/estimate-usage.js';
import type { Metering } from '../conversation/stream-rules.js';
import type { Usage } from '../conversation/usage.js';

/** Who ended an answer before it was whole; null for a whole one. */
export type BrokenBy = 'client' | 'upstream' | null;

/** What is known of an answer whose upstream did not report its usage, or not all of it. */
export interface InexactAnswer {
  readonly brokenBy: BrokenBy;
  readonly estimates: Metering['estimates'];
  /** What was reported before it broke off. */
  readonly reported: Usage | null;
  /** Tokens of the request, as they are thought to be. */
  readonly input: number;
  /** The same of what of the answer has passed. */
  readonly output: number;
}

/**
 * The usage of an answer that was not reported whole. For one that broke off it is what was reported and what has
 * passed; an upstream that failed before any of it passed has used nothing.
 */
export function inexactUsage({ brokenBy, estimates, reported, input, output }: InexactAnswer): Usage | null {
  if (estimates === 'none') return reported;
  const answered = estimates === 'conversation' ? output : 0;
  if (brokenBy === null) return reported ?? estimatedUsage(input, answered);
  if (reported !== null) return { ...reported, output: Math.max(reported.output, answered), partial: true };
  if (brokenBy === 'upstream' && output === 0) return null;
  return { input, output: answered, cached: 0, cacheWritten: 0, reasoning: 0, partial: true };
}
