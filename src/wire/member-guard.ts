import { isUtf8 } from 'node:buffer';
import { GatewayError, shortened } from '../errors.js';
import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './bytes.js';
import { parseJson } from './json.js';
import { type Span, tooDeep } from './json-scan.js';
import { afterColon, endOfString, endOfValue, mostDepth, skipSpace } from './json-skip.js';
import {
  asksNoModel,
  isAbsent,
  pluginsMember,
  routedMembers,
  type SteeringMember,
  steeringMembers,
} from './routed-members.js';

/*
 * Parsers differ on the names of members. Go's encoding/json accepts `Model` and `MODEL` for `model` (and U+017F for s,
 * U+212A for k, by Unicode simple case folding), and its second version may ignore `_` and `-`. Readers of protocol
 * buffers accept a snake-case and a camel-case name. Of two equal names, some parsers use the first and some the last.
 * The gateway has to check and count what an upstream reads: a member that could be read as one of the checked members
 * is refused.
 */

/** Which members of an object must be unambiguous. */
export interface GuardSpec {
  /** Names of members that are read. Names that fold alike are spellings of one member, which may occur once. */
  readonly reads: readonly string[];
  /** Members in `reads` whose value is an object with such members. */
  readonly within?: Readonly<Record<string, GuardSpec>>;
  /** Whether the spec, if it is `within` another, also applies to each object in a list. */
  readonly isList?: boolean;
  /**
   * A second spelling of a member in `reads`, by the member's name, that some clients send beside it. It is accepted
   * with the same value, which leaves nothing to differ on, and only for a member that routes and counts nothing.
   */
  readonly echoes?: Readonly<Record<string, string>>;
  /** Names that are refused: an upstream that knows them would use them in place of what was checked. */
  readonly bars?: readonly string[];
  /** Members in `reads` whose positions are reported. */
  readonly notes?: readonly string[];
  /** Whether to report steering members. */
  readonly steers?: boolean;
}

/** A guard's entry for a name. */
export type GuardEntry = OwnEntry | SteeringEntry;

interface OwnEntry extends AnyEntry {
  readonly kind: 'read' | 'barred';
  readonly steering: null;
}

interface SteeringEntry extends AnyEntry {
  readonly kind: 'steering';
  readonly steering: SteeringMember;
}

interface AnyEntry {
  /** Accepted spellings. Messages recommend the first. */
  readonly spellings: readonly string[];
  /** A spelling that is accepted beside the first one with the same value, or null. */
  readonly echo: string | null;
  /** Index among the members that are read, from 0; else -1. */
  readonly index: number;
  readonly isNoted: boolean;
  readonly within: MemberGuard | null;
}

/** The position of a member's value, and the member's path. */
interface NotedMember extends Span {
  readonly path: string;
}

/** What a guard has found in a body. */
export interface FoundMembers {
  readonly steering: readonly SteeringMember[];
  /** Values of the members in `notes`. */
  readonly noted: readonly NotedMember[];
}

/** Checks the members of one kind of object. Created once. */
export class MemberGuard {
  readonly spec: GuardSpec;
  readonly #entries = new Map<string, GuardEntry>();
  /** By a hash of the folded name. Most names are unknown to the guard, and are recognized as such by this alone. */
  readonly #filter = new Uint8Array(buckets);
  readonly #hashes = new Set<number>();
  #longest = 0;

  /** @param isInner whether the object is merged into another one, in which case nothing is merged into it */
  constructor(spec: GuardSpec, isInner = false) {
    this.spec = spec;
    const { reads, within = {}, echoes = {}, bars = [], notes = [], steers = false } = spec;
    const guards = new Map(
      Object.entries(within).map(([name, inner]) => [foldName(name), new MemberGuard(inner)]),
    );
    for (const name of reads) {
      const folded = foldName(name);
      const known = this.#entries.get(folded);
      this.#set(folded, {
        spellings: [...(known?.spellings ?? []), name],
        echo: known?.echo ?? echoes[name] ?? null,
        kind: 'read',
        steering: null,
        index: known?.index ?? this.#entries.size,
        isNoted: notes.includes(name),
        within: guards.get(folded) ?? null,
      });
    }
    for (const name of bars)
      this.#add(name, { ...unread, spellings: [name], kind: 'barred', steering: null });
    if (!steers) return;
    for (const name of steeringMembers) {
      // SDKs merge `extra_body` into the body. Some servers accept the member and merge it themselves, over what was
      // checked.
      const isMerged = name === extraBody && !isInner;
      const merged = isMerged ? new MemberGuard(mergedInto(spec), true) : null;
      const within = name === pluginsMember ? new MemberGuard(plugin) : merged;
      this.#add(name, { ...unread, spellings: [name], kind: 'steering', steering: name, within });
    }
  }

  #add(name: string, entry: GuardEntry): void {
    const folded = foldName(name);
    if (!this.#entries.has(folded)) this.#set(folded, entry);
  }

  #set(folded: string, entry: GuardEntry): void {
    this.#entries.set(folded, entry);
    this.#longest = Math.max(this.#longest, folded.length);
    const hash = hashOf(folded);
    this.#hashes.add(hash);
    this.#filter[hash & (buckets - 1)] = 1;
  }

  /** Returns the entry of a name, however it is spelled. */
  entryOf(name: string): GuardEntry | null {
    return this.#entries.get(foldUpTo(name, this.#longest)) ?? null;
  }

  /**
   * Whether a name may be read as one of the guard's names.
   * @param start offset of the name's bytes in a JSON text, after the quote
   * @returns true also if only decoding can decide
   */
  concerns(body: Buffer, start: number, end: number): boolean {
    let hash = 0;
    for (let at = start; at < end; at++) {
      const folded = folds[body[at] as number] as number;
      if (folded === unclear) return true;
      if (folded !== dropped) hash = (Math.imul(hash, 31) + folded) | 0;
    }
    if (this.#filter[hash & (buckets - 1)] === 0 || !this.#hashes.has(hash)) return false;
    return this.#entries.has(foldName(body.toString('latin1', start, end)));
  }

  /**
   * Checks the members of an object in a JSON text.
   * @param open offset of the object
   * @param holder what the object is, for messages
   * @returns null if the text is not JSON or nested too deep
   * @throws {GatewayError} of status 400 that names the ambiguous members
   */
  look(body: Buffer, open: number, holder = 'request body'): FoundMembers | null {
    const walk = new Walk(body, holder);
    return walk.object(this, open, '', mostDepth) === -1 ? null : walk.found();
  }
}

/**
 * Checks a body that has been parsed.
 * @throws {GatewayError} of status 400 that names the ambiguous members
 */
export function checkMembers(body: Buffer, guard: MemberGuard): FoundMembers {
  const found = guard.look(body, skipSpace(body, 0));
  if (found !== null) return found;
  throw tooDeep();
}

const extraBody = 'extra_body';
const plugin: GuardSpec = { reads: ['id'], isList: true };

/** Common part of entries for names that are not read. */
const unread = { echo: null, index: -1, isNoted: false, within: null };

/** Returns the spec for what is merged into an object: it must not replace what is read from the object itself. */
function mergedInto({ reads }: GuardSpec): GuardSpec {
  return { reads: [], bars: [...routedMembers, ...reads], steers: true };
}

const buckets = 2048;
const dropped = 0;
const unclear = 255;

/** The folded form of each byte of a name: letters without their case, and nothing for what parsers may ignore. */
const folds = Uint8Array.from({ length: 256 }, (_, byte) => {
  const text = String.fromCharCode(byte);
  if (byte >= 0x7f || byte < 0x20 || text === '\\') return unclear;
  return text === '_' || text === '-' || text === ' ' ? dropped : text.toLowerCase().charCodeAt(0);
});

function hashOf(folded: string): number {
  let hash = 0;
  for (let i = 0; i < folded.length; i++) hash = (Math.imul(hash, 31) + folded.charCodeAt(i)) | 0;
  return hash;
}

/** Letters besides A to Z that fold to ASCII letters (CaseFolding.txt, status C). U+0130 and U+0131 do not. */
const foldedLetters = new Map([
  [0x17f, 's'],
  [0x212a, 'k'],
]);

/**
 * Returns the form in which names are compared: up to a NUL, with simple case folding, and without `_`, `-`, white
 * space, control characters and characters that are invisible or not text.
 */
export function foldName(name: string): string {
  return foldUpTo(name, name.length);
}

/** Folds a name that is compared with others of a length: of a longer one, only enough that it differs from them. */
function foldUpTo(name: string, longest: number): string {
  let folded = '';
  for (let i = 0; i < name.length && folded.length <= longest; i++) {
    const code = name.charCodeAt(i);
    if (code === 0) break;
    if (code < 0x80) {
      const fold = folds[code] as number;
      if (code === 0x5c) folded += '\\';
      else if (fold !== dropped && fold !== unclear) folded += String.fromCharCode(fold);
    } else if (!isUnseen(code)) folded += foldedLetters.get(code) ?? name[i];
  }
  return folded;
}

/** Whether a code is white space, a format character, a surrogate (no guarded name contains one) or U+FFFD. */
function isUnseen(code: number): boolean {
  return (
    code <= 0xa0 ||
    code === 0xad ||
    (code >= 0x2000 && code <= 0x200f) ||
    (code >= 0x2028 && code <= 0x202f) ||
    (code >= 0x205f && code <= 0x206f) ||
    (code >= 0xd800 && code <= 0xdfff) ||
    (code >= 0xfe00 && code <= 0xfe0f) ||
    code === 0xfeff ||
    code === 0xfffd
  );
}

/** Maximum length, in bytes, of a name that has to be decoded to know whether it is one of the guard's. */
const longestName = 4096;

/** The result for a body without findings. */
export const noMembers: FoundMembers = { steering: [], noted: [] };

/** One pass over a body. */
class Walk {
  readonly #body: Buffer;
  readonly #holder: string;
  readonly #steering: SteeringMember[] = [];
  readonly #noted: NotedMember[] = [];

  constructor(body: Buffer, holder: string) {
    this.#body = body;
    this.#holder = holder;
  }

  found(): FoundMembers {
    if (this.#steering.length === 0 && this.#noted.length === 0) return noMembers;
    return { steering: [...new Set(this.#steering)], noted: this.#noted };
  }

  /**
   * Checks an object.
   * @param path path of the object, followed by a dot; empty for the whole body
   * @returns the offset after the object, or -1
   */
  object(guard: MemberGuard, open: number, path: string, levels: number): number {
    const body = this.#body;
    if (body[open] !== OPEN_BRACE || levels === 0) return -1;
    const seen: GuardEntry[] = [];
    // One of an object at most: each is looked for in all of it.
    let hasEcho = false;
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      if (body[at] !== QUOTE) return -1;
      const close = endOfString(body, at + 1);
      const value = close === -1 ? -1 : afterColon(body, close);
      if (value === -1) return -1;
      const name = guard.concerns(body, at + 1, close) ? this.#nameAt(at, close) : null;
      let entry = name === null ? null : guard.entryOf(name);
      if (entry !== null && name !== null && name === entry.echo && !hasEcho) {
        hasEcho = this.#isEcho(entry, value, open);
        // It is the value of the other spelling.
        if (hasEcho) entry = null;
      }
      if (entry !== null && name !== null && this.#isUnclear(entry, name, seen))
        throw ambiguousMembers(this.#holder, path, entry, this.#namesLike(guard, entry, open));
      const end = this.#value(entry, value, path, levels - 1);
      if (end === -1) return -1;
      at = skipSpace(body, end);
      if (body[at] === CLOSE_BRACE) return at + 1;
      if (body[at] !== COMMA) return -1;
      at = skipSpace(body, at + 1);
    }
  }

  #isUnclear(entry: GuardEntry, name: string, seen: GuardEntry[]): boolean {
    if (entry.kind === 'barred') return true;
    if (entry.kind === 'steering') return false;
    if (seen.includes(entry) || !entry.spellings.includes(name)) return true;
    seen.push(entry);
    return false;
  }

  /** Whether a value of an object is, byte for byte, that of the member in its first spelling. */
  #isEcho({ spellings }: GuardEntry, value: number, open: number): boolean {
    const body = this.#body;
    const wanted = `"${spellings[0]}"`;
    const end = endOfValue(body, value, mostDepth);
    for (let at = skipSpace(body, open + 1); body[at] === QUOTE; ) {
      const close = endOfString(body, at + 1);
      const other = close === -1 ? -1 : afterColon(body, close);
      const otherEnd = other === -1 ? -1 : endOfValue(body, other, mostDepth);
      if (end === -1 || otherEnd === -1) return false;
      if (close + 1 - at === wanted.length && body.toString('latin1', at, close + 1) === wanted)
        return body.subarray(value, end).equals(body.subarray(other, otherEnd));
      at = skipSpace(body, otherEnd);
      if (body[at] === COMMA) at = skipSpace(body, at + 1);
    }
    return false;
  }

  #value(entry: GuardEntry | null, at: number, path: string, levels: number): number {
    const isObject = this.#body[at] === OPEN_BRACE;
    const isList = this.#body[at] === OPEN_BRACKET;
    const within = entry?.within ?? null;
    const end =
      within !== null && isObject && entry !== null
        ? this.object(within, at, `${path}${entry.spellings[0]}.`, levels)
        : within?.spec.isList && isList && entry !== null
          ? this.#list(within, at, `${path}${entry.spellings[0]}`, levels)
          : endOfValue(this.#body, at, levels);
    if (entry?.kind === 'steering' && end !== -1 && this.#steers(entry, at, end))
      this.#steering.push(entry.steering);
    if (entry?.isNoted && end !== -1)
      this.#noted.push({ start: at, end, path: `${path}${entry.spellings[0]}` });
    return end;
  }

  /** Whether a steering member with a value could lead an upstream elsewhere. */
  #steers({ steering, within }: SteeringEntry, at: number, end: number): boolean {
    if (steering === pluginsMember) return !asksNoModel(parseJson(this.#body.toString('utf8', at, end)));
    if (isAbsent(steering, this.#body[at])) return false;
    return within === null || this.#body[at] !== OPEN_BRACE;
  }

  /** Checks the objects of a list. @returns the offset after the list, or -1 */
  #list(guard: MemberGuard, open: number, path: string, levels: number): number {
    const body = this.#body;
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACKET) return at + 1;
    for (let index = 0; ; index++) {
      const end =
        body[at] === OPEN_BRACE
          ? this.object(guard, at, `${path}[${index}].`, levels - 1)
          : endOfValue(body, at, levels - 1);
      if (end === -1) return -1;
      at = skipSpace(body, end);
      if (body[at] === CLOSE_BRACKET) return at + 1;
      if (body[at] !== COMMA) return -1;
      at = skipSpace(body, at + 1);
    }
  }

  /**
   * @throws {GatewayError} for a name that is not UTF-8, which parsers read differently, or that is too long to decode
   */
  #nameAt(start: number, close: number): string {
    if (close - start > longestName)
      throw new GatewayError(
        'invalid_request_body',
        `The ${this.#holder} has a member whose name is ${close - start} bytes long: ` +
          `send names of up to ${longestName} bytes.`,
      );
    const bytes = this.#body.subarray(start, close + 1);
    try {
      if (isUtf8(bytes)) return JSON.parse(bytes.toString('utf8')) as string;
    } catch {
      // Invalid JSON is refused by the parse of the body; the name matches none of the guard's.
      return '';
    }
    throw new GatewayError(
      'invalid_request_body',
      `The ${this.#holder} has a member whose name is not UTF-8: send names in UTF-8 (RFC 8259 section 8.1).`,
    );
  }

  /** Returns all names of an object that may be read as the wanted one, in order. */
  #namesLike(guard: MemberGuard, wanted: GuardEntry, open: number): string[] {
    const body = this.#body;
    const names: string[] = [];
    for (let at = skipSpace(body, open + 1); body[at] === QUOTE; ) {
      const close = endOfString(body, at + 1);
      const value = close === -1 ? -1 : afterColon(body, close);
      if (value === -1) break;
      const name = guard.concerns(body, at + 1, close) ? this.#nameAt(at, close) : null;
      if (name !== null && guard.entryOf(name) === wanted) names.push(name);
      const end = endOfValue(body, value, mostDepth);
      if (end === -1) break;
      at = skipSpace(body, end);
      if (body[at] === COMMA) at = skipSpace(body, at + 1);
    }
    return names;
  }
}

const shownName = 100;
const shownNames = 5;

/**
 * Returns the error of status 400 for ambiguous members.
 * @param holder what contains the members
 * @param path path of their object, followed by a dot; empty for the whole body
 * @param names the names as received
 */
export function ambiguousMembers(
  holder: string,
  path: string,
  { spellings, kind }: GuardEntry,
  names: readonly string[],
): GatewayError {
  const wanted = `'${path}${spellings[0]}'`;
  const distinct = [...new Set(names)];
  const shown = distinct.slice(0, shownNames).map((name) => `'${path}${printable(name)}'`);
  let problem: string;
  if (kind === 'barred')
    problem = `has ${shown.join(' and ')}, which could count in place of what the gateway has checked: leave it out`;
  else if (distinct.length > 1)
    problem = `has ${shown.join(' and ')}, and parsers differ on which one counts: send ${wanted} alone`;
  else if (names.length > 1)
    problem = `has ${shown[0]} twice, and parsers differ on which one counts: send it once`;
  else
    problem = `has ${shown[0]}, which some parsers take for ${wanted} and others do not: it is spelled ${wanted}`;
  return new GatewayError('invalid_request_body', `The ${holder} ${problem}.`, {
    param: `${path}${spellings[0]}`,
  });
}

/** Escapes invisible characters, and cuts long names. */
function printable(name: string): string {
  return Array.from(shortened(name, shownName), (character) => {
    const code = character.charCodeAt(0);
    const isHidden = code < 0x20 || code === 0x7f || (code >= 0x80 && isUnseen(code));
    return isHidden ? `\\u${code.toString(16).padStart(4, '0')}` : character;
  }).join('');
}
