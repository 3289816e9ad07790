import { isObject, parseJson } from '../../wire/json.js';

/** Of an object that is not only the member: so much is kept to be read when it is whole. */
const mostHeld = 1024 * 1024;
const longestOpening = 256;
const shortEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Reads the single member of a JSON object while a model writes the object, as an answer or as the arguments of a call.
 * Anything else is treated as the member itself, since models do not always follow the format.
 */
export abstract class MemberReader {
  /** Whether no text of the member has been returned yet. */
  isEmpty = true;
  protected readonly name: string;
  /** Input that could not be read yet. */
  protected held = '';
  readonly #opening: RegExp;
  #state: 'opening' | 'member' | 'after' | 'other' | 'plain' = 'opening';

  /**
   * @param name letters only
   * @param begin pattern for the beginning of the member; only applied to the input before the member
   */
  constructor(name: string, begin: string) {
    this.name = name;
    this.#opening = new RegExp(`^\\s*\\{\\s*"${name}"\\s*:\\s*${begin}`);
  }

  /** @returns the text that is available now, or an empty string */
  add(piece: string): string {
    if (this.#state === 'after') return '';
    this.held += piece;
    if (this.#state === 'opening') this.#open();
    if (this.#state === 'member') return this.#noted(this.read());
    if (this.#state === 'other' && this.held.length > mostHeld) this.#state = 'plain';
    return this.#state === 'plain' ? this.#noted(this.taken()) : '';
  }

  /** Called when the object has ended. @returns the rest of the member */
  end(): string {
    const rest = this.taken();
    if (this.#state === 'member' || this.#state === 'after' || rest === '') return '';
    return this.#noted(this.#state === 'plain' ? rest : this.whole(rest));
  }

  /** Returns the text of the member that is available in `held`. */
  protected abstract read(): string;

  /** Returns the member in a whole text. */
  protected abstract whole(text: string): string;

  /** Ignores all further input. */
  protected stop(): void {
    this.#state = 'after';
    this.held = '';
  }

  /** Returns all held input and clears it. */
  protected taken(): string {
    const text = this.held;
    this.held = '';
    return text;
  }

  #open(): void {
    const found = this.#opening.exec(this.held.slice(0, longestOpening));
    const start = this.held.trimStart();
    if (found !== null) {
      this.held = this.held.slice(found[0].length);
      this.#state = 'member';
    } else if (start !== '' && !start.startsWith('{')) this.#state = 'plain';
    else if (this.held.length >= longestOpening) this.#state = 'other';
  }

  #noted(text: string): string {
    if (text !== '') this.isEmpty = false;
    return text;
  }
}

/** Reads a string member and returns its text. */
export class MemberText extends MemberReader {
  constructor(name: string) {
    super(name, '"');
  }

  /** Returns the complete characters of the string. Half an escape, or half a surrogate pair, waits for the rest. */
  protected override read(): string {
    const { held } = this;
    let text = '';
    let at = 0;
    while (at < held.length) {
      const special = nextSpecial(held, at);
      text += held.slice(at, special);
      at = special;
      if (at === held.length) break;
      if (held[at] === '"') {
        this.stop();
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
    this.held = held.slice(at);
    if (!isHighSurrogate(text.charCodeAt(text.length - 1))) return text;
    // The half is held as an escape again, and read together with its other half.
    this.held = `\\u${text.charCodeAt(text.length - 1).toString(16)}${this.held}`;
    return text.slice(0, -1);
  }

  protected override whole(text: string): string {
    return memberOf(text, this.name);
  }
}

/** Reads a member of any type and returns its JSON text. */
export class MemberValue extends MemberReader {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(name: string) {
    super(name, '(?=\\S)');
  }

  /** Reads to the end of the value: its last bracket or quote, or the end of a number or word. */
  protected override read(): string {
    const piece = this.taken();
    for (let at = 0; at < piece.length; at++) {
      const character = piece[at] as string;
      if (this.#isInString) this.#stringStep(character);
      else if (character === '"') this.#isInString = true;
      else if (character === '{' || character === '[') this.#depth++;
      else if (character === '}' || character === ']') this.#depth--;
      else if (this.#depth > 0 || !' \n\r\t,'.includes(character)) continue;
      // An opening quote does not end a string.
      if (this.#depth > 0 || this.#isInString) continue;
      this.stop();
      const isPart = this.#depth === 0 && '"}]'.includes(character);
      return piece.slice(0, isPart ? at + 1 : at);
    }
    return piece;
  }

  protected override whole(text: string): string {
    const parsed = parseJson(text);
    const value = isObject(parsed) ? parsed[this.name] : undefined;
    return value === undefined ? text : JSON.stringify(value);
  }

  #stringStep(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = true;
    else if (character === '"') this.#isInString = false;
  }
}

/**
 * Returns the text of the single member of a JSON object, or the text itself if it is not such an object.
 * @param text usually that of a whole object
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
