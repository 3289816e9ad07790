import { isOfMedium, mediumTokens, tokensOf } from '../conversation/estimate-usage.js';
import { streamedWeight } from './streamed-text.js';

/** Smaller pieces of an answer hold no media to speak of. */
const leastWithMedia = 4 * 1024;

/** How many tokens an answer that passes may have cost, by its bytes, where its upstream does not say. */
export class OutputEstimate {
  /** Bytes so far. */
  passed = 0;
  /** How many of them were images and sounds in base64, whose tokens their length does not tell. */
  #ofMedia = 0;
  #media = 0;
  #inMedium = false;

  add(piece: Buffer): void {
    this.passed += piece.length;
    if (piece.length < leastWithMedia) return;
    const isMedium = isOfMedium(piece);
    if (isMedium) this.#ofMedia += piece.length;
    if (isMedium && !this.#inMedium) this.#media++;
    this.#inMedium = isMedium;
  }

  /** @param tail the last bytes of what passed */
  tokens(tail: Buffer, isStream: boolean): number {
    const written = isStream ? streamedWeight(tail, this.passed) : this.passed;
    const ofText = this.#ofMedia === 0 ? 1 : 1 - this.#ofMedia / this.passed;
    return this.#media * mediumTokens + tokensOf(written * ofText);
  }
}
