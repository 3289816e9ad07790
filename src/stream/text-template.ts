import { plainText } from '../wire/raw-text.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
/** Bytes that may stand after a backslash and be taken over as they are (RFC 8259 section 7). */
const simpleEscapes = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));
/** Templates in a row that fitted no second event; then the upstream writes something else into each, and none is made. */
const mostUnused = 8;

/**
 * The events of a stream that carry a text are the same but for that text. Once one was decoded, the next are known by
 * the bytes around theirs, and the text goes from one JSON string into the other without being decoded: a tenth of
 * what a parse and a new event cost.
 *
 * All strings here hold one byte a character, so that offsets are those of the bytes.
 */
export class TextTemplate {
  readonly #openings: readonly string[];
  #before = '';
  #after = '';
  /** Between the texts of two events in a row. */
  #between = '';
  #isSet = false;
  #unused = 0;

  /** @param member name of the member that holds the text in the upstream's events */
  constructor(member: string) {
    this.#openings = [`"${member}":"`, `"${member}": "`];
  }

  /**
   * Takes an event for a model of those to come.
   * @param event a whole event with its blank line
   * @param text what was decoded from it, and all that was
   */
  learn(event: string, text: string): void {
    this.forget();
    if (this.#unused >= mostUnused) return;
    for (const opening of this.#openings) {
      const at = event.indexOf(opening);
      // With two such members it would be left to chance which one is the text.
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
   * Reads the event that begins at `at`, and those of the same form that follow it.
   * @param texts filled with their raw texts, in order
   * @returns where the last of them ends, or -1 when the event at `at` is another one
   */
  collect(bytes: string, at: number, texts: string[]): number {
    texts.length = 0;
    if (!this.#isSet) return -1;
    const before = this.#before;
    const between = this.#between;
    const after = this.#after;
    // Comparing slices is several times as fast as `startsWith`, which goes character by character.
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

/** Where a JSON string ends that began before `start`; -1 for one that is empty or has to be decoded. */
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
