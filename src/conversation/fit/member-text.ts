import { isObject, parseJson } from '../../wire/json.js';

/** Of an object that is not only the member: so much is kept to be read when it is whole. */
const mostHeld = 1024 * 1024;
/** Ends where the member's text begins. Only tried on what has come before it. */
const opening = (name: string) => new RegExp(`^\\s*\\{\\s*"${name}"\\s*:\\s*"`);
const longestOpening = 256;
const shortEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Reads the text of the one member of a JSON object while the object is written, as a model writes the arguments of a
 * call. What is no such object is taken for the text itself, since models do not always keep to a form.
 */
export class MemberText {
  /** No text has been given out. */
  isEmpty = true;
  readonly #name: string;
  readonly #opening: RegExp;
  #state: 'opening' | 'text' | 'after' | 'other' | 'plain' = 'opening';
  /** What came and could not be read yet. */
  #held = '';

  /** @param name letters alone */
  constructor(name: string) {
    this.#name = name;
    this.#opening = opening(name);
  }

  /** @returns the text that can be given out now, or an empty string */
  add(piece: string): string {
    if (this.#state === 'after') return '';
    this.#held += piece;
    if (this.#state === 'opening') this.#open();
    return this.#given();
  }

  /** The object has ended. @returns the rest of the text */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    if (this.#state === 'plain') return this.#noted(rest);
    return this.#state === 'after' || this.#state === 'text' ? '' : this.#noted(memberOf(rest, this.#name));
  }

  #open(): void {
    const found = this.#opening.exec(this.#held.slice(0, longestOpening));
    const start = this.#held.trimStart();
    if (found !== null) {
      this.#held = this.#held.slice(found[0].length);
      this.#state = 'text';
    } else if (start !== '' && !start.startsWith('{')) this.#state = 'plain';
    else if (this.#held.length >= longestOpening) this.#state = 'other';
  }

  #given(): string {
    if (this.#state === 'text') return this.#noted(this.#unescaped());
    if (this.#state === 'other' && this.#held.length > mostHeld) this.#state = 'plain';
    if (this.#state !== 'plain') return '';
    const text = this.#held;
    this.#held = '';
    return this.#noted(text);
  }

  /** The characters of the string that are whole: half an escape, or half of a surrogate pair, waits for the rest. */
  #unescaped(): string {
    const held = this.#held;
    let text = '';
    let at = 0;
    while (at < held.length) {
      const special = nextSpecial(held, at);
      text += held.slice(at, special);
      at = special;
      if (at === held.length) break;
      if (held[at] === '"') {
        this.#state = 'after';
        this.#held = '';
        return text;
      }
      const letter = held[at + 1];
      const length = letter === 'u' ? 6 : 2;
      if (at + length > held.length) break;
      text +=
        letter === 'u'
          ? String.fromCharCode(Number.parseInt(held.slice(at + 2, at + 6), 16) || 0)
          : (shortEscapes[letter as string] ?? letter);
      at += length;
    }
    this.#held = held.slice(at);
    if (!isHighSurrogate(text.charCodeAt(text.length - 1))) return text;
    // It is written as an escape again, as which it is read with its other half.
    this.#held = `\\u${text.charCodeAt(text.length - 1).toString(16)}${this.#held}`;
    return text.slice(0, -1);
  }

  #noted(text: string): string {
    if (text !== '') this.isEmpty = false;
    return text;
  }
}

/**
 * The text of the one member of a JSON object, or the text itself where that is not what it is.
 * @param text of a whole object, most likely
 */
export function memberOf(text: string, name: string): string {
  const parsed = parseJson(text);
  if (!isObject(parsed)) return typeof parsed === 'string' ? parsed : text;
  const value = parsed[name];
  if (typeof value === 'string') return value;
  return Object.keys(parsed).length === 0 ? '' : text;
}

function nextSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 || code === 0x5c) return at;
  }
  return text.length;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
