import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../wire/bytes.js';
import { endOfString, isSpace, skipSpace } from '../wire/json-skip.js';
import { foldName } from '../wire/member-guard.js';

/*
 * Decides whether a string of an unparsed body is within JSON whose members may have any name: the arguments and results of
 * tool calls, and schemas. All of that is text to a model.
 */

/** Members with such JSON as an object, as their names fold. In the body itself, they are something else. */
const freeMembers = new Set(
  [
    'input',
    'args',
    'arguments',
    'response',
    'parameters',
    'parameters_json_schema',
    'schema',
    'input_schema',
    'output_schema',
    'response_schema',
    'response_json_schema',
  ].map(foldName),
);
/** Longer names are taken for one of those: they may be one with much that parsers ignore. */
const longestName = 64;
/** Number of objects in which such a member is not one of the body itself. */
const innerDepth = 3;
/** Maximum number of bytes read outside strings, without white space. */
const mostRead = 2 * 1024 * 1024;

/** Reads a body once, from one string that is asked for to the next. */
export class ArgumentPlaces {
  readonly #body: Buffer;
  #at = 0;
  #read = 0;
  #depth = 0;
  /** Depth of the arguments that are being read; 0 outside of any. */
  #freeDepth = 0;
  /** The last string, after its opening quote. */
  #nameAt = 0;
  #nameEnd = 0;
  #isNamed = false;

  constructor(body: Buffer) {
    this.#body = body;
  }

  /**
   * Whether a string is within arguments.
   * @param quote position of its opening quote, behind that of the string before
   * @returns true also in doubt
   */
  hold(quote: number): boolean {
    while (this.#at < quote && this.#read < mostRead) this.#step();
    return this.#at !== quote || this.#freeDepth !== 0;
  }

  #step(): void {
    const body = this.#body;
    const byte = body[this.#at];
    if (byte === QUOTE) {
      this.#nameAt = this.#at + 1;
      this.#nameEnd = endOfString(body, this.#nameAt);
      // Without its end, nothing behind it is clear.
      if (this.#nameEnd === -1) this.#read = mostRead;
      this.#at = this.#nameEnd + 1;
      this.#isNamed = false;
    } else if (isSpace(byte as number)) {
      this.#at = skipSpace(body, this.#at);
      return;
    } else {
      if (byte === COLON) this.#isNamed = true;
      else if (byte === COMMA) this.#isNamed = false;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#open(byte);
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#close();
      this.#at++;
    }
    this.#read++;
  }

  #open(byte: number): void {
    this.#depth++;
    const isFree =
      byte === OPEN_BRACE &&
      this.#isNamed &&
      this.#depth >= innerDepth &&
      this.#freeDepth === 0 &&
      this.#hasFreeName();
    if (isFree) this.#freeDepth = this.#depth;
    this.#isNamed = false;
  }

  #close(): void {
    if (this.#depth === this.#freeDepth) this.#freeDepth = 0;
    this.#depth--;
  }

  #hasFreeName(): boolean {
    if (this.#nameEnd - this.#nameAt > longestName) return true;
    const name = this.#body.toString('utf8', this.#nameAt, this.#nameEnd);
    return name.includes('\\') || freeMembers.has(foldName(name));
  }
}
