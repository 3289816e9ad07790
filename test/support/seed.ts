import fc from 'fast-check';

/**
 * The seed of all random cases of a run. The process that chooses it prints it, and `SEED=NUMBER` in the environment
 * repeats the same cases.
 */
export const seed = chosen();

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });

/** The generator of this seed, from which tests draw. */
export { fc };

/** This is `npm test`, which goes through a quarter of all cases, and another one in each run. */
export const isQuick = process.env.TEST_QUICK === '1';

/** Returns the number of random cases of a property. */
export function cases(count: number): number {
  return isQuick ? Math.ceil(count / 4) : count;
}

/** The places from the first to below the end at which something is tried; in `npm test` every fourth of them. */
export function* places(first: number, end: number, step = 1): Generator<number> {
  const [skipped, each] = isQuick ? [seed % 4, 4] : [0, 1];
  for (let at = first + skipped * step; at < end; at += each * step) yield at;
}

function chosen(): number {
  const { SEED: given = '' } = process.env;
  if (given !== '') {
    if (!Number.isInteger(Number(given))) throw new Error(`SEED=${given} is no whole number`);
    return Number(given);
  }
  const own = Math.floor(Math.random() * 2 ** 31);
  // Child processes use the same seed.
  process.env.SEED = `${own}`;
  process.stderr.write(`SEED=${own}\n`);
  return own;
}

/** Returns pseudo-random numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomOf(from: number): () => number {
  let state = from | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns whole numbers from 0 to below a bound. */
export type Integers = (below: number) => number;

export function integersOf(from: number): Integers {
  const random = randomOf(from);
  return (below) => Math.floor(random() * below);
}

/** Pseudo-random numbers in [0, 1) of this run's seed. */
export const random = randomOf(seed);
