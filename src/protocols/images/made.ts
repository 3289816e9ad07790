import type { UnitCounter } from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../wire/bytes.js';
import { SplitText } from '../../wire/split-text.js';
import { StreamedImages } from './streamed.js';

/*
 * Counts the images of an answer as its bytes pass, without storing its megabytes of image data.
 */

/** Maximum number of bytes that are kept of a string. The names that are looked for are shorter. */
const longestName = 8;
/** Depths of a member of the answer, and of an image in its `data`. */
const ofAnswer = 1;
const ofData = 2;
const ofImage = 3;

/** Counts the objects in `data` of a whole answer. An error may take the place of an image that was not made. */
class DataImages {
  /** Null until the list has ended. */
  made: number | null = null;
  #count = 0;
  #depth = 0;
  #inData = false;
  #isFailed = false;
  readonly #split = new SplitText();
  /** Beginning of the last string. */
  #text = '';
  /** Name of the member whose value is next, if it is one of those that are read. */
  #name: string | null = null;

  add(piece: Buffer): void {
    let at = this.#split.isOpen ? this.#readText(piece, 0) + 1 : 0;
    for (; at < piece.length; at++) {
      switch (piece[at]) {
        case QUOTE:
          this.#text = '';
          at = this.#readText(piece, at + 1);
          break;
        case COLON:
          this.#name = this.#text;
          break;
        case COMMA:
          this.#name = null;
          break;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          this.#open(piece[at] === OPEN_BRACE);
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#close();
          break;
      }
    }
  }

  /** @returns the offset of the closing quote of the string, or the end of the piece */
  #readText(piece: Buffer, from: number): number {
    const end = this.#split.endIn(piece, from);
    const missing = longestName - this.#text.length;
    if (missing > 0) this.#text += piece.toString('latin1', from, Math.min(end, from + missing));
    const isError = this.#inData && this.#depth === ofImage && this.#name === 'error';
    if (isError && !this.#split.isOpen && this.#text !== '') this.#isFailed = true;
    return end;
  }

  #open(isObject: boolean): void {
    const name = this.#name;
    if (this.#depth === ofAnswer && name === 'data' && !isObject) {
      this.#inData = true;
      this.#count = 0;
    } else if (this.#inData && this.#depth === ofData) this.#isFailed = !isObject;
    else if (this.#inData && this.#depth === ofImage && name === 'error' && isObject) this.#isFailed = true;
    this.#name = null;
    this.#depth++;
  }

  #close(): void {
    this.#depth--;
    this.#name = null;
    if (!this.#inData) return;
    if (this.#depth === ofData && !this.#isFailed) this.#count++;
    if (this.#depth !== ofAnswer) return;
    this.#inData = false;
    this.made = this.#count;
  }
}

/** Counts the images of an answer; see `StreamRules.countUnits`. */
export class ImageCounter implements UnitCounter {
  readonly #data = new DataImages();
  readonly #streamed = new StreamedImages();

  addWhole(piece: Buffer): void {
    this.#data.add(piece);
  }

  addEvents(run: Buffer): void {
    this.#streamed.add(run);
  }

  get usage(): Usage | null {
    return this.#streamed.usage;
  }

  get completed(): number {
    return this.#streamed.completed;
  }

  get begun(): number {
    return this.#streamed.begun;
  }

  get reported(): number {
    return this.#streamed.reported;
  }

  get units(): number | null {
    return this.#data.made ?? (this.completed || null);
  }
}
