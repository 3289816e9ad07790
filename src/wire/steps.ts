import { setImmediate } from 'node:timers/promises';

/**
 * Work that may stop wherever it yields, and has a result at its end. What takes long with many keys or models is written so,
 * once: it runs at once where nobody waits meanwhile, and in slices where calls do.
 */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** A slice ends with the first step behind this: nothing of a process waits longer for its turn. */
const sliceMs = 1;

/** Does all of the work. @returns its result @throws whatever a step throws */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Does the work in slices of a millisecond; between two of them everything else of the process has its turn. What the work
 * reads must not change until its end.
 * @returns its result; rejects with whatever a step throws
 */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    await setImmediate();
    const end = performance.now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (performance.now() < end);
  }
}

/** Puts short texts together into pieces of what a slice has time for. @param texts made one by one as they are taken */
export async function* textInSlices(texts: Iterable<string>): AsyncGenerator<string, void, undefined> {
  let piece = '';
  let end = performance.now() + sliceMs;
  for (const text of texts) {
    piece += text;
    if (performance.now() < end) continue;
    yield piece;
    piece = '';
    await setImmediate();
    end = performance.now() + sliceMs;
  }
  yield piece;
}
