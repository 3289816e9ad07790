import { performance } from 'node:perf_hooks';

/** How fast answers are given. */
export interface Pace {
  /** From the whole request to the head of the answer. */
  readonly latencyMs: number;
  /** 0 for no pacing. */
  readonly tokensPerSecond: number;
}

/** @returns tells how many milliseconds to wait before so many tokens more, at a rate that counts from now on */
export function pacing(tokensPerSecond: number): (tokens: number) => number {
  const started = performance.now();
  let given = 0;
  return (tokens) => {
    if (tokens === 0 || tokensPerSecond === 0) return 0;
    given += tokens;
    const early = started + (given * 1000) / tokensPerSecond - performance.now();
    return early >= 1 ? early : 0;
  };
}
