/**
 * Work that may pause wherever it yields, and returns a result. Work that takes long with many keys or models is
 * written this way, and either runs without interruption, if nothing else waits, or in slices between calls.
 */
export type Steps<Result> = Generator<EndOfSlice | undefined, Result, undefined>;

/** Yielded by a step to end its slice: it has sent another process as much as that one can process in a turn. */
export type EndOfSlice = 'end of slice';

/** A slice ends with the first step after this many milliseconds, which bounds the delay of other work. */
const sliceMs = 1;

/** Does all of the work without interruption. @returns its result @throws whatever a step throws */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Runs work that blocks the event loop for a while, one piece per turn, so that other events are processed in between.
 * The queue has no limit: its callers have to bound it.
 */
export class TurnQueue {
  #waiting: (() => void)[] = [];

  /** @param work runs in a later turn, in order. Must not throw */
  add(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(this.#next);
  }

  readonly #next = (): void => {
    const [work] = this.#waiting;
    work?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(this.#next);
  };
}

/** Work that waits for a slice. */
const slices = new TurnQueue();

/**
 * Resolves when one slice may run. All work in slices shares one slice per turn of the event loop. With a slice for
 * each, fifty keys created concurrently would delay a process by fifty milliseconds in every turn.
 */
export function nextSlice(): Promise<void> {
  return new Promise((resolve) => slices.add(resolve));
}

/**
 * Does the work in slices of a millisecond, between which other work of the process runs. What the work reads must not
 * change until its end.
 * @param onEndOfSlice awaited when a step has ended its slice
 * @returns its result; rejects with whatever a step throws
 */
export async function inSlices<Result>(
  steps: Steps<Result>,
  onEndOfSlice: (() => Promise<void>) | null = null,
): Promise<Result> {
  for (;;) {
    await nextSlice();
    const end = performance.now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (step.value !== 'end of slice') continue;
      await onEndOfSlice?.();
      break;
    } while (performance.now() < end);
  }
}

/** Maximum length of a piece before it ends, in characters, which also bounds the time for sending it. */
const pieceChars = 64 * 1024;

/** Joins short texts to pieces, each within one slice. @param texts generated one by one as they are taken */
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

/** Number of items that are sorted or merged in one step. */
const sortedAtOnce = 128;

/**
 * Sorts a list like `Array.sort`, which would take milliseconds without a pause for thousands of items.
 * @returns a new list
 */
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
