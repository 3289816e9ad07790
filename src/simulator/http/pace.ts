import { performance } from 'node:perf_hooks';

/** The pace of answers. */
export interface Pace {
  /** Delay from the whole request to the head of the answer. */
  readonly latencyMs: number;
  /** 0 for no pacing. */
  readonly tokensPerSecond: number;
}

/** @returns a function of the milliseconds to wait before further tokens, at a rate measured from now on */
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
