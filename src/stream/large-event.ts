import { CLOSE_BRACE, CLOSE_BRACKET, CR, LF, OPEN_BRACE, OPEN_BRACKET, QUOTE, SPACE } from '../wire/bytes.js';
import { SplitText } from '../wire/split-text.js';
import { firstEventEnd, lastEventEnd } from '../wire/sse.js';

/** Levels of an event whose members are kept. Ids, usages and errors are not deeper; objects and lists below are emptied. */
const mostLevels = 5;
/** Longer texts in the items of an answer are emptied: images, and what a model has written. No id is longer. */
const longestText = 256;
/** The same in its upper levels, where the message of an error is. */
const longestAbove = 4096;
const levelsAbove = 3;
/** Most bytes that are kept of an event. */
const mostBytes = 1024 * 1024;
/** Most bytes of a member of the answer, such as its list of items: without bound, it would displace the usage. */
const mostOfMember = 768 * 1024;
/** Left free by all that is deeper than this many levels, so that the event's own members fit behind it. */
const leastLeft = 16 * 1024;
const firstBytes = 16 * 1024;
/** A blank line may begin in the last bytes of one part and end in the next. */
const longestBegun = 3;
const blankLine = Buffer.from('\n\n');
const dataField = Buffer.from('data:');
/** The last byte of a byte order mark. */
const endOfMark = 0xbf;
const nothing = Buffer.alloc(0);

/**
 * An event that is so large that it is passed on in parts. While they pass, a short form of its JSON is kept, without long
 * texts and without what is nested deeply, which is read in place of the event once that has ended.
 */
export class LargeEvent {
  #kept = Buffer.allocUnsafe(firstBytes);
  #length = 0;
  #depth = 0;
  #hasBegun = false;
  #levels = mostLevels;
  /** Where the content of the last object or list begins that is a member of the event's own object. */
  #memberAt = 0;
  /** The same of a member in such an object. */
  #innerAt = 0;
  readonly #text = new SplitText();
  /** Where the open text begins in what is kept; -1 if it is not kept. */
  #textAt = -1;
  /** The last bytes of the parts so far; null before the first. */
  #last: Buffer | null = null;

  /** Size of what is kept in memory. */
  get bytes(): number {
    return this.#kept.length;
  }

  /** Its JSON has ended. */
  get isClosed(): boolean {
    return this.#hasBegun && this.#depth === 0;
  }

  /**
   * Handles a run of events, of which the first or the last is this one.
   * @param goesOn the event has not ended in it
   * @returns the whole events of the run. This one is among them, in its short form, if it has ended
   */
  add(run: Buffer, goesOn: boolean): Buffer {
    const start = this.#last === null ? lastEventEnd(run, 0, run.length) : 0;
    const end = goesOn ? run.length : this.#endIn(run);
    this.#take(run.subarray(start, end));
    this.#last = Buffer.concat([this.#last ?? nothing, run.subarray(-longestBegun)]).subarray(-longestBegun);
    return goesOn ? run.subarray(0, start) : Buffer.concat([this.whole(), run.subarray(end)]);
  }

  /** Returns the event in its short form. */
  whole(): Buffer {
    return Buffer.concat([this.#kept.subarray(0, this.#length), blankLine]);
  }

  #endIn(run: Buffer): number {
    const last = this.#last ?? nothing;
    const end = firstEventEnd(Buffer.concat([last, run]), 0, last.length + run.length);
    return end === -1 ? run.length : Math.max(0, end - last.length);
  }

  #take(part: Buffer): void {
    let at = this.#text.isOpen ? this.#takeText(part, 0) + 1 : 0;
    // What follows the JSON does not matter.
    for (; at < part.length && !this.isClosed; at++) {
      const byte = part[at] as number;
      if (this.#depth === 0 && !this.#beginsJson(byte)) this.#put(byte);
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#open(byte);
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#close(byte);
      else if (byte === QUOTE) at = this.#beginText(part, at + 1);
      else if (this.#depth <= this.#levels) this.#put(byte);
    }
  }

  /** Comments and other fields in front of the data may have braces, too. */
  #beginsJson(byte: number): boolean {
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return false;
    let end = this.#length;
    while (this.#kept[end - 1] === SPACE) end--;
    const start = end - dataField.length;
    if (start < 0 || this.#kept.compare(dataField, 0, dataField.length, start, end) !== 0) return false;
    const before = this.#kept[start - 1];
    return start === 0 || before === LF || before === CR || before === endOfMark;
  }

  #open(byte: number): void {
    this.#hasBegun = true;
    if (this.#depth <= this.#levels) this.#put(byte);
    this.#depth++;
    if (this.#depth === 2) this.#memberAt = this.#length;
    else if (this.#depth === 3) this.#innerAt = this.#length;
  }

  #close(byte: number): void {
    const isKept = this.#depth <= this.#levels + 1;
    // One that has been emptied for its end still needs it.
    if (isKept && !this.#put(byte) && this.#depth === this.#levels + 1) this.#put(byte);
    this.#depth--;
    if (this.#levels === this.#depth) this.#levels = mostLevels;
  }

  /** @returns the offset of the closing quote, or the length of the part */
  #beginText(part: Buffer, from: number): number {
    if (this.#depth <= this.#levels && this.#put(QUOTE)) this.#textAt = this.#length;
    return this.#takeText(part, from);
  }

  #takeText(part: Buffer, from: number): number {
    const end = this.#text.endIn(part, from);
    if (this.#textAt !== -1) this.#copyText(part, from, end);
    if (this.#text.isOpen) return end;
    if (this.#depth <= this.#levels) this.#put(QUOTE);
    this.#textAt = -1;
    return end;
  }

  #copyText(part: Buffer, from: number, end: number): void {
    const longest = this.#depth <= levelsAbove ? longestAbove : longestText;
    if (this.#length - this.#textAt + end - from > longest) {
      this.#length = this.#textAt;
      this.#textAt = -1;
    } else if (this.#hasRoom(end - from)) this.#length += part.copy(this.#kept, this.#length, from, end);
  }

  /** @returns false if there is no room for it */
  #put(byte: number): boolean {
    if (!this.#hasRoom(1)) return false;
    this.#kept[this.#length++] = byte;
    return true;
  }

  #hasRoom(bytes: number): boolean {
    const needed = this.#length + bytes;
    const most = this.#depth > 1 ? mostBytes - leastLeft : mostBytes;
    if (needed > most || (this.#depth > 2 && needed - this.#innerAt > mostOfMember)) {
      this.#keepLess();
      return false;
    }
    if (needed <= this.#kept.length) return true;
    const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(mostBytes, 2 * this.#kept.length)));
    this.#kept.copy(larger, 0, 0, this.#length);
    this.#kept = larger;
    return true;
  }

  /** Empties the member in which the event has become too long. Those of the event's own object cannot be left out. */
  #keepLess(): void {
    this.#textAt = -1;
    if (this.#depth > 1) this.#length = this.#depth > 2 ? this.#innerAt : this.#memberAt;
    this.#levels = this.#depth > 1 ? Math.min(this.#depth, 3) - 1 : -1;
  }
}
