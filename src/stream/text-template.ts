import { BACKSLASH, LOWER_U, QUOTE } from '../wire/bytes.js';
import { plainText } from '../wire/raw-text.js';

/** Bytes that may follow a backslash and can be copied unchanged (RFC 8259 section 7). */
const simpleEscapes = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));
/** Consecutive templates that matched no second event. After these no more are made, since each event of the upstream differs. */
const mostUnused = 8;

/**
 * The text events of a stream are equal except for their text. Once one is decoded, the next are recognised by the bytes around
 * their text, and the text is copied from one JSON string to the other without decoding. That costs a tenth of parsing and
 * encoding an event.
 *
 * All strings here hold one byte a character, so that their offsets are byte offsets.
 */
export class TextTemplate {
  readonly #openings: readonly string[];
  #before = '';
  #after = '';
  /** The bytes between the texts of two consecutive events. */
  #between = '';
  #isSet = false;
  #unused = 0;

  /** @param member name of the member with the text in the upstream's events */
  constructor(member: string) {
    this.#openings = [`"${member}":"`, `"${member}": "`];
  }

  /**
   * Uses an event as the template for the next ones.
   * @param event a whole event with its blank line
   * @param text the text that was decoded from it, and nothing else was
   */
  learn(event: string, text: string): void {
    this.forget();
    if (this.#unused >= mostUnused) return;
    for (const opening of this.#openings) {
      const at = event.indexOf(opening);
      // With two such members it is ambiguous which one is the text.
      if (at === -1 || event.indexOf(opening, at + 1) !== -1) continue;
      const start = at + opening.length;
      const end = endOfText(event, start);
      if (end === -1 || plainText(event.slice(start, end)) !== text) continue;
      this.#before = event.slice(0, start);
      this.#after = event.slice(end);
      this.#between = this.#after + this.#before;
      this.#isSet = true;
      this.#unused++;
      return;
    }
  }

  forget(): void {
    this.#isSet = false;
  }

  /**
   * Reads the event at `at`, and the events of the same form that follow it.
   * @param texts filled with their raw texts, in order
   * @returns the end of the last of them, or -1 if the event at `at` has another form
   */
  collect(bytes: string, at: number, texts: string[]): number {
    texts.length = 0;
    if (!this.#isSet) return -1;
    const before = this.#before;
    const between = this.#between;
    const after = this.#after;
    // Comparing slices is several times faster than `startsWith`, which compares single characters.
    let start = at + before.length;
    if (bytes.slice(at, start) !== before) return -1;
    let ended = -1;
    for (let end = endOfText(bytes, start); end !== -1; end = endOfText(bytes, start)) {
      const next = end + between.length;
      const isFollowed = bytes.slice(end, next) === between;
      if (!isFollowed && bytes.slice(end, end + after.length) !== after) break;
      texts.push(bytes.slice(start, end));
      ended = end + after.length;
      if (!isFollowed) break;
      start = next;
    }
    if (ended !== -1) this.#unused = 0;
    return ended;
  }
}

/** Returns the end of a JSON string that began before `start`; -1 if it is empty or has to be decoded. */
function endOfText(bytes: string, start: number): number {
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes.charCodeAt(at);
    if (byte === QUOTE) return at === start ? -1 : at;
    if (byte < 0x20) return -1;
    if (byte !== BACKSLASH) continue;
    const escaped = bytes.charCodeAt(++at);
    if (escaped === LOWER_U || !simpleEscapes.has(escaped)) return -1;
  }
  return -1;
}
