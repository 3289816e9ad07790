import { CLOSE_BRACE, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../wire/bytes.js';
import { textStart } from '../wire/json-skip.js';
import { SplitText } from '../wire/split-text.js';
import { lastEventEnd } from '../wire/sse.js';

/** Deepest nesting that is tracked. Nothing that is read of an answer is deeper, and an upstream could nest without bound. */
const mostEnds = 1000;

/** An event that is so large that it is passed on in parts. Tracks which objects, lists and strings of its JSON are open. */
export class LargeEvent {
  #hasBegun = false;
  #depth = 0;
  readonly #text = new SplitText();

  /** Nothing is open, so the JSON may have ended. */
  get isClosed(): boolean {
    return this.#depth <= 0 && !this.#text.isOpen;
  }

  /**
   * Handles the next part.
   * @param before what is known of the parts before, unless it is the first
   * @param run the part; the first one follows whole events
   * @param goesOn it is not the last part
   * @returns both, with everything that is open closed, so that values have the same depth as in the whole event
   */
  add(before: Buffer, run: Buffer, goesOn: boolean): Buffer {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    if (goesOn) this.#look(run, isFirst ? lastEventEnd(run, 0, run.length) : 0);
    const part = Buffer.concat([before, run, Buffer.from(goesOn ? this.#ends : '')]);
    return isFirst ? part : behindBraces(part);
  }

  /** Returns what closes everything that is open. Lists are closed like objects, since only the depth matters. */
  get #ends(): string {
    // After a backslash the first quote belongs to the string.
    const { isOpen, isEscaped } = this.#text;
    const ofText = isOpen ? (isEscaped ? '""' : '"') : '';
    return ofText + '}'.repeat(Math.min(mostEnds, Math.max(0, this.#depth)));
  }

  /** @param from offset in the part where the JSON begins or continues */
  #look(part: Buffer, from: number): void {
    let at = this.#text.isOpen ? this.#text.endIn(part, from) + 1 : from;
    for (; at < part.length; at++) {
      const byte = part[at];
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth--;
      else if (byte === QUOTE) at = this.#text.endIn(part, at + 1);
    }
  }
}

/** Returns a part without its leading opening braces, so that it cannot be mistaken for an answer of its own. */
function behindBraces(part: Buffer): Buffer {
  let rest = part;
  for (let at = textStart(rest); rest[at] === OPEN_BRACE; at = textStart(rest)) rest = rest.subarray(at + 1);
  return rest;
}
