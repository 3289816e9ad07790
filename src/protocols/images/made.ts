import type { UnitCounter } from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../wire/bytes.js';
import { endOfString } from '../../wire/json-skip.js';
import { EventUsages } from './event-usages.js';

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
  #inText = false;
  /** Whether the last byte is a backslash that escapes the next one. */
  #isEscaped = false;
  /** Beginning of the last string. */
  #text = '';
  /** Name of the member whose value is next, if it is one of those that are read. */
  #name: string | null = null;

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    let at = this.#inText ? this.#readText(piece, 0) : 0;
    for (; at < piece.length; at++) {
      switch (piece[at]) {
        case QUOTE:
          this.#inText = true;
          this.#text = '';
          at = this.#readText(piece, at + 1) - 1;
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

  /** @returns the offset after the closing quote of the string, or the end of the piece */
  #readText(piece: Buffer, from: number): number {
    const start = from + (this.#isEscaped ? 1 : 0);
    this.#isEscaped = false;
    const end = endOfString(piece, start);
    const stop = end === -1 ? piece.length : end;
    const missing = longestName - this.#text.length;
    if (missing > 0) this.#text += piece.toString('latin1', from, Math.min(stop, from + missing));
    if (end !== -1) {
      this.#inText = false;
      const isError = this.#inData && this.#depth === ofImage && this.#name === 'error';
      if (isError && this.#text !== '') this.#isFailed = true;
      return end + 1;
    }
    let before = piece.length;
    while (before > start && piece[before - 1] === BACKSLASH) before--;
    this.#isEscaped = (piece.length - before) % 2 === 1;
    return piece.length;
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

/** Counts occurrences of some words in bytes that arrive in arbitrary pieces. */
class WordCount {
  count = 0;
  readonly #words: readonly Buffer[];
  readonly #longest: number;
  /** The last bytes so far, in which a word may have begun. */
  #begun = Buffer.alloc(0);

  constructor(words: readonly string[]) {
    this.#words = words.map((word) => Buffer.from(word));
    this.#longest = Math.max(...words.map((word) => word.length));
  }

  add(piece: Buffer): void {
    const cut = Buffer.concat([this.#begun, piece.subarray(0, this.#longest - 1)]);
    for (const word of this.#words) {
      for (let at = cut.indexOf(word); at !== -1 && at < this.#begun.length; at = cut.indexOf(word, at + 1))
        if (at + word.length > this.#begun.length) this.count++;
      for (let at = piece.indexOf(word); at !== -1; at = piece.indexOf(word, at + word.length)) this.count++;
    }
    const kept = this.#longest - 1;
    const last = piece.length >= kept ? piece : Buffer.concat([this.#begun, piece]);
    this.#begun = Buffer.from(last.subarray(Math.max(0, last.length - kept)));
  }
}

/** Counts the events of some types in a stream. */
class EventCount {
  /** Counts types in quotes, which no string can contain, and lines with the names of events. */
  readonly #types: WordCount;
  readonly #lines: WordCount;

  constructor(types: readonly string[]) {
    this.#types = new WordCount(types.map((type) => `"${type}"`));
    this.#lines = new WordCount(types.flatMap((type) => [`event: ${type}\n`, `event: ${type}\r\n`]));
  }

  add(run: Buffer): void {
    this.#types.add(run);
    this.#lines.add(run);
  }

  get count(): number {
    return Math.max(this.#types.count, this.#lines.count);
  }
}

/** Counts the images of an answer; see `StreamRules.countUnits`. */
export class MadeImages implements UnitCounter {
  readonly #data = new DataImages();
  /** One event per image. Ark and MiniMax send one for all images, after one event for each of them. */
  readonly #completed = new EventCount(['image_generation.completed', 'image_edit.completed']);
  readonly #succeeded = new EventCount([
    'image_generation.partial_succeeded',
    'image_edit.partial_succeeded',
  ]);
  readonly #usages = new EventUsages();

  addWhole(piece: Buffer): void {
    this.#data.add(piece);
  }

  addEvents(run: Buffer): void {
    this.#completed.add(run);
    this.#succeeded.add(run);
    this.#usages.add(run);
  }

  get usage(): Usage | null {
    return this.#usages.usage;
  }

  get completed(): number {
    return Math.max(this.#completed.count, this.#succeeded.count);
  }

  get begun(): number {
    return Math.max(this.completed, this.#usages.begun);
  }

  get reported(): number {
    // The usage behind events of single images is that of all.
    return this.usage !== null && this.#succeeded.count > 0 ? this.completed : this.#usages.reported;
  }

  get units(): number | null {
    return this.#data.made ?? (this.completed || null);
  }
}
