import { endOfString, textStart } from '../wire/json-skip.js';
import { lastEventEnd } from '../wire/sse.js';

const quote = 0x22;
const openBrace = 0x7b;
const openBracket = 0x5b;
const closeBrace = 0x7d;
const closeBracket = 0x5d;
const backslash = 0x5c;
/** Nothing that is believed of an answer stands deeper; an upstream could open any number of lists. */
const mostEnds = 1000;

/** An event that is so large that it passes in parts, and what has begun and not ended in its JSON. */
export class LargeEvent {
  #hasBegun = false;
  #depth = 0;
  #inText = false;
  /** The last byte is a backslash that says what the next one means. */
  #isEscaped = false;

  /** Nothing is open: the text may have ended. */
  get isClosed(): boolean {
    return this.#depth <= 0 && !this.#inText;
  }

  /**
   * Takes the next part.
   * @param before what is known of what stood before it, where it is not the first
   * @param run it; the first one behind events that are whole
   * @param goesOn it is not the last
   * @returns both with the ends of all that is open: what stands in it is as deep as in the whole
   */
  add(before: Buffer, run: Buffer, goesOn: boolean): Buffer {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    if (goesOn) this.#look(run, isFirst ? lastEventEnd(run, 0, run.length) : 0);
    const part = Buffer.concat([before, run, Buffer.from(goesOn ? this.#ends : '')]);
    return isFirst ? part : behindBraces(part);
  }

  /** What ends what is open, each object and list as an object: how deep something stands is all that it is for. */
  get #ends(): string {
    // The first quote is a part of the text behind such a backslash.
    const ofText = this.#inText ? (this.#isEscaped ? '""' : '"') : '';
    return ofText + '}'.repeat(Math.min(mostEnds, Math.max(0, this.#depth)));
  }

  /** @param from where in the part the text begins, or goes on */
  #look(part: Buffer, from: number): void {
    let at = from;
    if (this.#inText) at = this.#endOfText(part, from + (this.#isEscaped ? 1 : 0)) + 1;
    for (; at < part.length; at++) {
      const byte = part[at];
      if (byte === openBrace || byte === openBracket) this.#depth++;
      else if (byte === closeBrace || byte === closeBracket) this.#depth--;
      else if (byte === quote) at = this.#endOfText(part, at + 1);
    }
  }

  #endOfText(part: Buffer, from: number): number {
    const end = endOfString(part, from);
    this.#inText = end === -1;
    if (end !== -1) return end;
    let before = part.length;
    while (before > from && part[before - 1] === backslash) before--;
    this.#isEscaped = (part.length - before) % 2 === 1;
    return part.length;
  }
}

/** Nothing begins there that could be taken for an answer of its own. */
function behindBraces(part: Buffer): Buffer {
  let rest = part;
  for (let at = textStart(rest); rest[at] === openBrace; at = textStart(rest)) rest = rest.subarray(at + 1);
  return rest;
}
