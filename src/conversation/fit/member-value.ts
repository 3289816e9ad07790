import { isObject, parseJson } from '../../wire/json.js';

/** Of an object that begins otherwise: so much is kept to be read when it is whole. */
const mostHeld = 1024 * 1024;
const longestOpening = 256;

/**
 * Reads the JSON text of the one member of an object while the object is written. What is no such object is taken for the
 * value itself, since models do not always keep to a form.
 */
export class MemberValue {
  readonly #name: string;
  /** Ends before the value. Only tried on what has come before it. */
  readonly #opening: RegExp;
  #state: 'opening' | 'value' | 'after' | 'other' | 'plain' = 'opening';
  #held = '';
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** @param name letters alone */
  constructor(name: string) {
    this.#name = name;
    this.#opening = new RegExp(`^\\s*\\{\\s*"${name}"\\s*:\\s*(?=\\S)`);
  }

  /** @returns what can be given out now of the value, or an empty string */
  add(piece: string): string {
    switch (this.#state) {
      case 'after':
        return '';
      case 'plain':
        return piece;
      case 'value':
        return this.#valueIn(piece);
      case 'other':
        this.#held += piece;
        return this.#held.length > mostHeld ? this.#plain() : '';
      default:
        this.#held += piece;
        return this.#open();
    }
  }

  /** The object has ended. @returns the rest of the value */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    const parsed = rest === '' ? undefined : parseJson(rest);
    const value = isObject(parsed) ? parsed[this.#name] : undefined;
    return value === undefined ? rest : JSON.stringify(value);
  }

  #open(): string {
    const found = this.#opening.exec(this.#held.slice(0, longestOpening));
    if (found !== null) {
      this.#state = 'value';
      const begun = this.#held.slice(found[0].length);
      this.#held = '';
      return this.#valueIn(begun);
    }
    const start = this.#held.trimStart();
    if (start !== '' && !start.startsWith('{')) return this.#plain();
    if (this.#held.length >= longestOpening) this.#state = 'other';
    return '';
  }

  #plain(): string {
    this.#state = 'plain';
    const text = this.#held;
    this.#held = '';
    return text;
  }

  /** Up to where the value ends: with its last bracket or quote, or before what follows a number or word. */
  #valueIn(piece: string): string {
    for (let at = 0; at < piece.length; at++) {
      const character = piece[at] as string;
      if (this.#isInString) this.#stringStep(character);
      else if (character === '"') this.#isInString = true;
      else if (character === '{' || character === '[') this.#depth++;
      else if (character === '}' || character === ']') this.#depth--;
      else if (this.#depth > 0 || !' \n\r\t,'.includes(character)) continue;
      // A string that begins has not ended with its first quote.
      if (this.#depth > 0 || this.#isInString) continue;
      this.#state = 'after';
      const isPart = this.#depth === 0 && '"}]'.includes(character);
      return piece.slice(0, isPart ? at + 1 : at);
    }
    return piece;
  }

  #stringStep(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = true;
    else if (character === '"') this.#isInString = false;
  }
}
