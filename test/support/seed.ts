import fc from 'fast-check';

/**
 * What all random cases of a run are drawn from. It is told by the process that chooses it, and `SEED=NUMBER` in the
 * environment draws the same cases again.
 */
export const seed = chosen();

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });

/** The one that draws from the seed: tests take it from here. */
export { fc };

function chosen(): number {
  const { SEED: given = '' } = process.env;
  if (given !== '') {
    if (!Number.isInteger(Number(given))) throw new Error(`SEED=${given} is no whole number`);
    return Number(given);
  }
  const own = Math.floor(Math.random() * 2 ** 31);
  // The processes that this one starts draw from the same.
  process.env.SEED = `${own}`;
  process.stderr.write(`SEED=${own}\n`);
  return own;
}

/** Numbers in [0, 1) that look random and are the same for the same seed (mulberry32). */
export function randomOf(from: number): () => number {
  let state = from | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Whole numbers from 0 to below what is asked. */
export type Integers = (below: number) => number;

export function integersOf(from: number): Integers {
  const random = randomOf(from);
  return (below) => Math.floor(random() * below);
}

/** Numbers in [0, 1) of this run's seed. */
export const random = randomOf(seed);
