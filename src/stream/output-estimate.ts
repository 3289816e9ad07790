import { isOfMedium, mediumTokens, tokensOf } from '../conversation/estimate-usage.js';
import { streamedWeight } from './streamed-text.js';
import type { Tail } from './tail.js';

/** Smaller pieces of an answer are not checked for media. */
const leastWithMedia = 4 * 1024;
/** Smaller runs are not checked for text once the one before them had any: their share of text is read from the last ones. */
const leastWithout = 512;

/** Estimates the output tokens of an answer that is passed on by its bytes, if its upstream does not report them. */
export class OutputEstimate {
  /** Bytes so far. */
  passed = 0;
  /** How many of them are neither media nor, in a stream, runs without text. */
  #ofText = 0;
  #media = 0;
  #inMedium = false;
  /** Marks of events that may have text. Empty if all may. */
  readonly #marks: readonly Buffer[];
  /** Whether the last run of a stream may have text. */
  #isText = false;
  /** The last bytes before the first run without text that followed one with text, and how many had passed. */
  #before: { readonly tail: Buffer; readonly passed: number } | null = null;

  constructor(marks: readonly Buffer[]) {
    this.#marks = marks;
  }

  /** @param tail the last bytes before the piece, if it is a run of events; null for a piece of a whole answer */
  add(piece: Buffer, tail: Tail | null): void {
    let isMedium = false;
    if (piece.length >= leastWithMedia) {
      isMedium = isOfMedium(piece);
      if (isMedium && !this.#inMedium) this.#media++;
      this.#inMedium = isMedium;
    }
    const isUnclear = !this.#isText || piece.length >= leastWithout;
    const isText = !isMedium && (tail === null || !isUnclear || this.#mayHaveText(piece));
    if (isText) this.#ofText += piece.length;
    else if (this.#isText && tail !== null)
      this.#before = { tail: Buffer.from(tail.bytes()), passed: this.passed };
    this.#isText = isText;
    this.passed += piece.length;
  }

  #mayHaveText(run: Buffer): boolean {
    if (this.#marks.length === 0) return true;
    for (const mark of this.#marks) if (run.includes(mark)) return true;
    return false;
  }

  /** @param tail the last bytes of a stream; null for a whole answer */
  tokens(tail: Buffer | null): number {
    return this.#media * mediumTokens + tokensOf(tail === null ? this.#ofText : this.#weightIn(tail));
  }

  #weightIn(tail: Buffer): number {
    if (this.#isText || this.passed <= tail.length) return streamedWeight(tail, this.passed, this.#ofText);
    const before = this.#before;
    return before === null ? 0 : streamedWeight(before.tail, before.passed, this.#ofText);
  }
}
