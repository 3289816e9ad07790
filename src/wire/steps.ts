import { TurnQueue } from './turn-queue.js';

/**
 * Work that may stop wherever it yields, and has a result at its end. What takes long with many keys or models is written so,
 * once: it runs at once where nobody waits meanwhile, and in slices where calls do.
 */
export type Steps<Result> = Generator<EndOfSlice | undefined, Result, undefined>;

/** What a step says with which its slice is to end: it has told another process as much as that takes up in a turn. */
export type EndOfSlice = 'end of slice';

/** A slice ends with the first step behind this: nothing of a process waits longer for its turn. */
const sliceMs = 1;

/** Does all of the work. @returns its result @throws whatever a step throws */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Whoever waits for a slice. */
const slices = new TurnQueue();

/**
 * Resolves when one slice may run: one in each turn of the event loop, whoever works in slices. With one each, fifty keys
 * that were made at once held a process up for as many milliseconds in every turn.
 */
export function nextSlice(): Promise<void> {
  return new Promise((resolve) => slices.add(resolve));
}

/**
 * Does the work in slices of a millisecond; between two of them everything else of the process has its turn. What the work
 * reads must not change until its end.
 * @returns its result; rejects with whatever a step throws
 */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    await nextSlice();
    const end = performance.now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (step.value === 'end of slice') break;
    } while (performance.now() < end);
  }
}

/** A piece ends behind so many characters: whoever sends it has time for that, too. */
const pieceChars = 64 * 1024;

/** Puts short texts together into pieces of what a slice has time for. @param texts made one by one as they are taken */
export async function* textInSlices(texts: Iterable<string>): AsyncGenerator<string, void, undefined> {
  let piece = '';
  await nextSlice();
  let end = performance.now() + sliceMs;
  for (const text of texts) {
    piece += text;
    if (piece.length < pieceChars && performance.now() < end) continue;
    yield piece;
    piece = '';
    await nextSlice();
    end = performance.now() + sliceMs;
  }
  yield piece;
}

/** So many are sorted, or merged, in one step. */
const sortedAtOnce = 128;

/** Sorts a list as its own `sort` does, which takes milliseconds in one piece where there are thousands. @returns a new list */
export function* sortSteps<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Steps<Item[]> {
  let runs: Item[][] = [];
  for (let from = 0; from < items.length; from += sortedAtOnce) {
    runs.push(items.slice(from, from + sortedAtOnce).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(yield* mergeSteps(runs[at] as Item[], runs[at + 1] ?? [], compare));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeSteps<Item>(
  one: readonly Item[],
  other: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Steps<Item[]> {
  const merged: Item[] = [];
  for (let i = 0, j = 0; i < one.length || j < other.length; ) {
    const isFirst = j === other.length || (i < one.length && compare(one[i] as Item, other[j] as Item) <= 0);
    merged.push((isFirst ? one[i++] : other[j++]) as Item);
    if (merged.length % sortedAtOnce === 0) yield;
  }
  return merged;
}
