import { isOfMedium, mediumTokens, tokensOf } from '../conversation/estimate-usage.js';
import { streamedWeight, writtenIn } from './streamed-text.js';

/** Smaller pieces of an answer are not checked for media. */
const leastWithMedia = 4 * 1024;

/** Estimates the output tokens of an answer that is passed on by its bytes, if its upstream does not report them. */
export class OutputEstimate {
  /** Bytes so far. */
  passed = 0;
  /** How many of them only opened the answer, or repeated it. */
  #opened = 0;
  /** How many of them were images and sounds in base64, whose length does not indicate their tokens. */
  #ofMedia = 0;
  #media = 0;
  #inMedium = false;
  /** The last bytes in front of an event that repeats the answer. Null without one. */
  #beforeRepeat: Buffer | null = null;
  /** Media in the parts of that event. */
  #repeated = 0;
  /** Tokens of the answer in that event. */
  #ofRepeat = 0;

  /** @param opened number of bytes at the start of `piece` that only open the answer */
  add(piece: Buffer, opened = 0): void {
    this.passed += piece.length;
    this.#opened += opened;
    const answered = piece.length - opened;
    if (answered < leastWithMedia) return;
    const isMedium = isOfMedium(opened === 0 ? piece : piece.subarray(opened));
    if (isMedium) this.#ofMedia += answered;
    if (isMedium && !this.#inMedium) this.#media++;
    this.#inMedium = isMedium;
  }

  /**
   * Adds bytes of an event that repeats the answer, and perhaps its request: they show no further output.
   * @param isPart they are not the whole event, which can then not be read: its media count where none were shown before
   */
  addRepeat(piece: Buffer, isPart: boolean): void {
    this.passed += piece.length;
    this.#opened += piece.length;
    if (!isPart || piece.length < leastWithMedia) return;
    const isMedium = isOfMedium(piece);
    if (isMedium && !this.#inMedium) this.#repeated++;
    this.#inMedium = isMedium;
  }

  /**
   * Sets what the estimate of a stream with such an event is made of.
   * @param tail the last bytes in front of the event
   * @param answer the answer in the event, for a stream that has shown none before; null if it is unknown
   */
  noteRepeat(tail: Buffer, answer: unknown): void {
    this.#beforeRepeat = tail;
    const { weight, media } = writtenIn(answer);
    this.#ofRepeat = mediumTokens * media + tokensOf(weight);
  }

  /** @param tail the last bytes of a stream, without what only opens it; null for a whole answer */
  tokens(tail: Buffer | null): number {
    const answered = this.passed - this.#opened;
    const written = tail === null ? answered : streamedWeight(this.#beforeRepeat ?? tail, answered);
    const ofText = this.#ofMedia === 0 ? 1 : 1 - this.#ofMedia / answered;
    const media = this.#media === 0 ? this.#repeated : this.#media;
    const shown = media * mediumTokens + tokensOf(written * ofText);
    return shown === 0 ? this.#ofRepeat : shown;
  }
}
