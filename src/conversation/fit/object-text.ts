import { argumentsMember, objectArguments } from '../tool-calls.js';

/** Maximum number of characters that are held of a text that is not an object, until it is complete. */
const mostHeld = 1024 * 1024;
/** Maximum nesting that readers of the protocols accept. */
const mostDepth = 1000;
/** Maximum number of characters of a number or word. */
const longestLiteral = 1024;
/** Length of `\u` with its digits. */
const codeLength = 6;
const shortEscapes = '"\\/bfnrt';
const literal = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;

/** What may follow. */
type Expected =
  | 'value'
  /** A value, or the end of an empty array. */
  | 'firstValue'
  | 'key'
  /** A key, or the end of an empty object. */
  | 'firstKey'
  | 'colon'
  /** A comma, or the end of the innermost object or array. */
  | 'next'
  | 'string'
  | 'literal'
  /** The object has ended, or is not valid from here on. */
  | 'nothing';

/**
 * Passes on the arguments of a call while they are written, as the JSON text of an object. A text that does not begin
 * as an object is held and wrapped in one. If an object breaks off, its open values are closed.
 */
export class ObjectText {
  /** Input before it is known whether an object begins, or text that is not an object. */
  #held = '';
  #object: ObjectRepair | null = null;
  /** Whether a text that is not an object was too long to hold and is being written as a string. */
  #isWritten = false;

  /** @returns what can be passed on now, or an empty string */
  add(piece: string): string {
    if (this.#object !== null) return this.#object.add(piece);
    if (this.#isWritten) return escaped(piece);
    this.#held += piece;
    const begin = this.#held.trimStart();
    if (begin.startsWith('{')) {
      const after = begin.slice(1).trimStart();
      if (after.startsWith('"') || after.startsWith('}')) {
        this.#object = new ObjectRepair();
        return this.#object.add(begin);
      }
    }
    if (this.#held.length <= mostHeld) return '';
    this.#isWritten = true;
    return `{"${argumentsMember}":"${escaped(this.#held)}`;
  }

  /**
   * Called when the arguments have ended.
   * @returns the missing end of the object, and whether it was incomplete
   */
  end(): { readonly rest: string; readonly isBroken: boolean } {
    if (this.#object !== null) {
      const rest = this.#object.end();
      return { rest, isBroken: rest !== '' };
    }
    return { rest: this.#isWritten ? '"}' : objectArguments(this.#held), isBroken: false };
  }
}

/** Escapes a text for use within quotes. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Reads an object character by character. */
class ObjectRepair {
  #expected: Expected = 'value';
  /** Closing brackets of everything that is open, innermost last. */
  readonly #closing: string[] = [];
  /** Output that is only passed on when more follows: a comma, half an escape, a number. */
  #held = '';
  /** Whether the open string is a key. */
  #isKey = false;

  add(piece: string): string {
    let out = '';
    let at = 0;
    while (at < piece.length && this.#expected !== 'nothing') {
      if (this.#expected === 'string' && this.#held === '') {
        const special = nextSpecial(piece, at);
        out += piece.slice(at, special);
        at = special;
        if (at === piece.length) break;
      }
      out += this.#take(piece[at] as string);
      at++;
    }
    return out;
  }

  /**
   * Called when the rest does not belong to the object.
   * @returns what closes everything that is open; empty if nothing is
   */
  end(): string {
    let out = '';
    if (this.#expected === 'string') out = this.#isKey ? '":null' : '"';
    else if (this.#expected === 'literal') out = literal.test(this.#held) ? this.#held : 'null';
    else if (this.#expected === 'colon') out = ':null';
    else if (this.#expected === 'value' && this.#closing.at(-1) === '}') out = 'null';
    this.#expected = 'nothing';
    this.#held = '';
    while (this.#closing.length > 0) out += this.#closing.pop();
    return out;
  }

  #take(character: string): string {
    switch (this.#expected) {
      case 'string':
        return this.#inString(character);
      case 'literal':
        return this.#inLiteral(character);
      default:
        return isSpace(character) ? '' : this.#between(character);
    }
  }

  #between(character: string): string {
    const before = this.#held;
    switch (this.#expected) {
      case 'firstKey':
      case 'key':
        if (character === '"') return this.#open('string', before, character, true);
        if (character === '}' && this.#expected === 'firstKey') return this.#close(character);
        break;
      case 'colon':
        if (character !== ':') break;
        this.#expected = 'value';
        return character;
      case 'next':
        if (character === this.#closing.at(-1)) return this.#close(character);
        if (character !== ',') break;
        this.#held = character;
        this.#expected = this.#closing.at(-1) === '}' ? 'key' : 'value';
        return '';
      case 'firstValue':
        if (character === ']') return this.#close(character);
        return this.#value(character);
      case 'value':
        return this.#value(character);
      default:
        break;
    }
    return this.end();
  }

  #value(character: string): string {
    const before = this.#held;
    if (character === '"') return this.#open('string', before, character, false);
    if ((character === '{' || character === '[') && this.#closing.length < mostDepth) {
      this.#closing.push(character === '{' ? '}' : ']');
      return this.#open(character === '{' ? 'firstKey' : 'firstValue', before, character, false);
    }
    if (!isOfLiteral(character)) return this.end();
    this.#held = character;
    this.#expected = 'literal';
    return before;
  }

  #open(expected: Expected, before: string, character: string, isKey: boolean): string {
    this.#held = '';
    this.#expected = expected;
    this.#isKey = isKey;
    return before + character;
  }

  #close(character: string): string {
    this.#closing.pop();
    this.#expected = this.#closing.length === 0 ? 'nothing' : 'next';
    return character;
  }

  #inString(character: string): string {
    if (this.#held !== '') return this.#inEscape(character);
    if (character === '\\') {
      this.#held = character;
      return '';
    }
    if (character !== '"') return escaped(character);
    this.#expected = this.#isKey ? 'colon' : 'next';
    return character;
  }

  /** An invalid escape stands for its own characters. */
  #inEscape(character: string): string {
    const isCode = this.#held.startsWith('\\u');
    if (isCode && !isHexDigit(character)) {
      const meant = escaped(this.#held);
      this.#held = '';
      return meant + this.#inString(character);
    }
    const sequence = this.#held + character;
    const isWhole = isCode ? sequence.length === codeLength : character !== 'u';
    this.#held = isWhole ? '' : sequence;
    if (!isWhole) return '';
    return isCode || shortEscapes.includes(character) ? sequence : escaped(sequence);
  }

  #inLiteral(character: string): string {
    if (isOfLiteral(character)) {
      this.#held += character;
      return this.#held.length > longestLiteral ? this.end() : '';
    }
    if (!literal.test(this.#held)) return this.end();
    const value = this.#held;
    this.#held = '';
    this.#expected = 'next';
    return value + (isSpace(character) ? '' : this.#between(character));
  }
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\r' || character === '\t';
}

function isHexDigit(character: string): boolean {
  return /^[0-9A-Fa-f]$/.test(character);
}

function isOfLiteral(character: string): boolean {
  return /^[A-Za-z0-9+.-]$/.test(character);
}

/** Returns where a string ends, or contains a character that JSON must escape. */
function nextSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 || code === 0x5c || code < 0x20) return at;
  }
  return text.length;
}
