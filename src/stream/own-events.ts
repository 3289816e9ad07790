import { eventEnd } from '../wire/sse.js';
import { wordAt } from '../wire/word.js';

const lf = 0x0a;
const cr = 0x0d;
const wordBytes = 4;
const nothing = Buffer.alloc(0);

/**
 * Finds the events of a stream that lack what its protocol's own have. The events of a stream resemble each other, so the
 * mark is looked for where the last one had it: some 50 ns an event, a fraction of what searching each takes.
 */
export class OwnEvents {
  readonly #marks: readonly Buffer[];
  /** The mark that the last event had, and how far from its beginning. */
  #mark: Buffer = nothing;
  /** Its bytes in words, of which the last one ends with it. */
  #words: Int32Array = new Int32Array(0);
  #offset = 0;

  /** @param marks one of which is in each event of the protocol's own */
  constructor(marks: readonly Buffer[]) {
    this.#marks = marks;
  }

  /**
   * @param run whole events
   * @param from where one of them begins
   * @param isPlain no line of them ends with a CR: see `hasPlainLines`
   * @returns where the first one begins that has no mark, or -1
   */
  strangeFrom(run: Buffer, from: number, isPlain: boolean): number {
    for (let start = from; start < run.length; ) {
      const at = start + this.#offset;
      let end = isPlain && this.#isMarked(run, at) ? endBehind(run, start, at) : -1;
      if (end === -1) {
        end = eventEnd(run, start);
        if (!this.has(run, start, end)) return start;
      }
      start = end;
    }
    return -1;
  }

  /** Whether the event of these bytes is one of the protocol's own. */
  has(run: Buffer, start: number, end: number): boolean {
    const event = run.subarray(start, end);
    for (const mark of this.#marks) {
      const at = event.indexOf(mark);
      if (at === -1) continue;
      if (mark !== this.#mark) this.#words = wordsOf(mark);
      this.#mark = mark;
      this.#offset = at;
      return true;
    }
    return false;
  }

  /** Compared in words: half of the time of a loop over the bytes. */
  #isMarked(run: Buffer, at: number): boolean {
    const words = this.#words;
    const last = words.length - 1;
    const lastAt = at + this.#mark.length - wordBytes;
    if (last === -1 || lastAt + wordBytes > run.length) return false;
    for (let i = 0, word = at; i < last; i++, word += wordBytes)
      if (wordAt(run, word) !== words[i]) return false;
    return wordAt(run, lastAt) === words[last];
  }
}

/** @returns none for a mark that is shorter than a word: then each event is searched */
function wordsOf(mark: Buffer): Int32Array {
  const count = mark.length < wordBytes ? 0 : Math.ceil(mark.length / wordBytes);
  const lastAt = mark.length - wordBytes;
  const words = new Int32Array(count);
  for (let i = 0; i < count; i++) words[i] = wordAt(mark, Math.min(i * wordBytes, lastAt));
  return words;
}

/** An event may end with CRs alone, and then an LF belongs to one behind it. */
export function hasPlainLines(run: Buffer): boolean {
  return run.indexOf(cr) === -1;
}

/**
 * Where the event ends that begins at `start` and has its mark at `at`, or -1 where that is not plain: its data is one line,
 * and the last.
 */
function endBehind(run: Buffer, start: number, at: number): number {
  let lineEnd = run.indexOf(lf, start);
  // The lines before its data: with a blank one among them the mark is another event's.
  while (lineEnd !== -1 && lineEnd < at) {
    if (run[lineEnd + 1] === lf) return -1;
    lineEnd = run.indexOf(lf, lineEnd + 1);
  }
  return lineEnd !== -1 && run[lineEnd + 1] === lf ? lineEnd + 2 : -1;
}
