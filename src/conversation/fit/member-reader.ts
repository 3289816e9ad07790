import { isObject, parseJson } from '../../wire/json.js';

/** Of an object that is not only the member: so much is kept to be read when it is whole. */
const mostHeld = 1024 * 1024;
const longestOpening = 256;
const shortEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Reads the one member of a JSON object while the object is written, as a model writes an answer or the arguments of a
 * call. What is no such object is taken for the member itself, since models do not always keep to a form.
 */
export abstract class MemberReader {
  /** Nothing has been given out. */
  isEmpty = true;
  protected readonly name: string;
  /** What came and could not be read yet. */
  protected held = '';
  readonly #opening: RegExp;
  #state: 'opening' | 'member' | 'after' | 'other' | 'plain' = 'opening';

  /**
   * @param name letters alone
   * @param begin pattern of what the member begins with; only tried on what has come before it
   */
  constructor(name: string, begin: string) {
    this.name = name;
    this.#opening = new RegExp(`^\\s*\\{\\s*"${name}"\\s*:\\s*${begin}`);
  }

  /** @returns what can be given out now, or an empty string */
  add(piece: string): string {
    if (this.#state === 'after') return '';
    this.held += piece;
    if (this.#state === 'opening') this.#open();
    if (this.#state === 'member') return this.#noted(this.read());
    if (this.#state === 'other' && this.held.length > mostHeld) this.#state = 'plain';
    return this.#state === 'plain' ? this.#noted(this.taken()) : '';
  }

  /** The object has ended. @returns the rest of the member */
  end(): string {
    const rest = this.taken();
    if (this.#state === 'member' || this.#state === 'after' || rest === '') return '';
    return this.#noted(this.#state === 'plain' ? rest : this.whole(rest));
  }

  /** What can be given out of the member that is held. */
  protected abstract read(): string;

  /** The member in a whole text. */
  protected abstract whole(text: string): string;

  /** Nothing more is read. */
  protected stop(): void {
    this.#state = 'after';
    this.held = '';
  }

  /** All that is held, which is then held no more. */
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

/** Reads a member that is a string: gives out its text. */
export class MemberText extends MemberReader {
  constructor(name: string) {
    super(name, '"');
  }

  /** The characters of the string that are whole: half an escape, or half of a surrogate pair, waits for the rest. */
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
    // It is written as an escape again, as which it is read with its other half.
    this.held = `\\u${text.charCodeAt(text.length - 1).toString(16)}${this.held}`;
    return text.slice(0, -1);
  }

  protected override whole(text: string): string {
    return memberOf(text, this.name);
  }
}

/** Reads a member of any kind: gives out its JSON text. */
export class MemberValue extends MemberReader {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(name: string) {
    super(name, '(?=\\S)');
  }

  /** Up to where the value ends: with its last bracket or quote, or before what follows a number or word. */
  protected override read(): string {
    const piece = this.taken();
    for (let at = 0; at < piece.length; at++) {
      const character = piece[at] as string;
      if (this.#isInString) this.#stringStep(character);
      else if (character === '"') this.#isInString = true;
      else if (character === '{' || character === '[') this.#depth++;
      else if (character === '}' || character === ']') this.#depth--;
      else if (this.#depth > 0 || !' \n\r\t,'.includes(character)) continue;
      // A string that begins has not ended with its first quote.
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
