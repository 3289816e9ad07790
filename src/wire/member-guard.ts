import { isUtf8 } from 'node:buffer';
import { GatewayError } from '../errors.js';
import { type Span, tooDeep } from './json-scan.js';
import { afterColon, endOfString, endOfValue, mostDepth, skipSpace } from './json-skip.js';
import { routedMembers } from './routed-members.js';
import { type SteeringMember, steeringMembers } from './steering-members.js';

/*
 * Parsers differ on the names of members: Go's encoding/json takes `Model` and `MODEL` for `model` (and U+017F for s,
 * U+212A for k: Unicode simple case folding), its second version may leave out `_` and `-`, readers of protocol buffers
 * take a snake and a camel name, and of two equal names some take the first and some the last. What is checked and
 * counted here must be what an upstream reads, so a member that could be taken for one of ours is refused.
 */

/** Which members of an object have to be clear. */
export interface GuardSpec {
  /** Names of members that are read; those that fold alike are spellings of one, of which one may come. */
  readonly reads: readonly string[];
  /** Objects among them that have such members of their own. */
  readonly within?: Readonly<Record<string, GuardSpec>>;
  /** It is of each object in a list, where it is `within` another. */
  readonly isList?: boolean;
  /** Names that may not be here: where they count, they would count in place of what was checked. */
  readonly bars?: readonly string[];
  /** Those that are read whose places are asked for. */
  readonly notes?: readonly string[];
  /** Members that lead an upstream elsewhere are looked for. */
  readonly steers?: boolean;
}

/** What a guard has to say of a name. */
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
  /** How it is spelled; the first is advised. */
  readonly spellings: readonly string[];
  /** Its bit among those that are read, from 0; else -1. */
  readonly index: number;
  readonly isNoted: boolean;
  readonly within: MemberGuard | null;
}

/** Where the value of a member is, and its path. */
interface NotedMember extends Span {
  readonly path: string;
}

/** What a body has beside what is clear. */
export interface FoundMembers {
  readonly steering: readonly SteeringMember[];
  /** Values of members that are noted. */
  readonly noted: readonly NotedMember[];
}

/** The members of one kind of object, made once. */
export class MemberGuard {
  readonly spec: GuardSpec;
  readonly #entries = new Map<string, GuardEntry>();
  /** By a hash of the folded name: most names are none of ours, and need no more than this. */
  readonly #filter = new Uint8Array(buckets);
  readonly #hashes = new Set<number>();

  /** @param isInner of what is merged into another object, where nothing more is */
  constructor(spec: GuardSpec, isInner = false) {
    this.spec = spec;
    const { reads, within = {}, bars = [], notes = [], steers = false } = spec;
    const guards = new Map(
      Object.entries(within).map(([name, inner]) => [foldName(name), new MemberGuard(inner)]),
    );
    for (const name of reads) {
      const folded = foldName(name);
      const known = this.#entries.get(folded);
      this.#set(folded, {
        spellings: [...(known?.spellings ?? []), name],
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
      // What SDKs merge into a body, some servers take as it is and merge themselves, over what was checked.
      const isMerged = name === extraBody && !isInner;
      const within = isMerged ? new MemberGuard(mergedInto(spec), true) : null;
      this.#add(name, { ...unread, spellings: [name], kind: 'steering', steering: name, within });
    }
  }

  #add(name: string, entry: GuardEntry): void {
    const folded = foldName(name);
    if (!this.#entries.has(folded)) this.#set(folded, entry);
  }

  #set(folded: string, entry: GuardEntry): void {
    this.#entries.set(folded, entry);
    const hash = hashOf(folded);
    this.#hashes.add(hash);
    this.#filter[hash & (buckets - 1)] = 1;
  }

  /** How the guard knows a name, however it is spelled. */
  entryOf(name: string): GuardEntry | null {
    return this.#entries.get(foldName(name)) ?? null;
  }

  /**
   * Whether a name may be taken for one of the guard's.
   * @param start of the name's bytes in a JSON text, between the quotes
   * @returns true also where only decoding can tell
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
   * Looks through the members of an object that is JSON.
   * @param open where it begins
   * @param holder what it is, for messages
   * @returns null for what cannot be walked: no JSON, or too deep
   * @throws {GatewayError} of status 400, naming the members that are not clear
   */
  look(body: Buffer, open: number, holder = 'request body'): FoundMembers | null {
    const walk = new Walk(body, holder);
    return walk.object(this, open, '', mostDepth) === -1 ? null : walk.found();
  }
}

/**
 * Looks through a body that has been parsed.
 * @throws {GatewayError} of status 400, naming the members that are not clear
 */
export function lookThrough(body: Buffer, guard: MemberGuard): FoundMembers {
  const found = guard.look(body, skipSpace(body, 0));
  if (found !== null) return found;
  throw tooDeep();
}

const extraBody = 'extra_body';

/** What names have in common that are not read. */
const unread = { index: -1, isNoted: false, within: null };

/** The guard of what is merged into an object: nothing there may stand for what is read of the object itself. */
function mergedInto({ reads }: GuardSpec): GuardSpec {
  return { reads: [], bars: [...routedMembers, ...reads], steers: true };
}

const buckets = 2048;
const dropped = 0;
const unclear = 255;

/** What each byte of a name counts for: letters without their case, nothing for what parsers may leave out. */
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

/** Besides A to Z these fold to letters of ASCII (CaseFolding.txt, status C); U+0130 and U+0131 fold to none. */
const foldedLetters = new Map([
  [0x17f, 's'],
  [0x212a, 'k'],
]);

/**
 * The form in which names are compared: simple case folding, up to a NUL, without `_`, `-`, white space, control
 * characters and what is not seen or not text.
 */
export function foldName(name: string): string {
  let folded = '';
  for (let i = 0; i < name.length; i++) {
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

/** White space, format characters, surrogates (which no name here has) and the replacement character. */
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

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Bytes of a name that has to be read to know whether it concerns us. */
const longestName = 4096;

/** Of a body that is clear. */
export const noMembers: FoundMembers = { steering: [], noted: [] };

/** One look at a body. */
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

  /** @param path of the object with a dot behind it, empty for the whole @returns the offset behind it, or -1 */
  object(guard: MemberGuard, open: number, path: string, levels: number): number {
    const body = this.#body;
    if (body[open] !== OPEN_BRACE || levels === 0) return -1;
    const seen: GuardEntry[] = [];
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      if (body[at] !== QUOTE) return -1;
      const close = endOfString(body, at + 1);
      const value = close === -1 ? -1 : afterColon(body, close);
      if (value === -1) return -1;
      const name = guard.concerns(body, at + 1, close) ? this.#nameAt(at, close) : null;
      const entry = name === null ? null : guard.entryOf(name);
      if (entry !== null && name !== null && this.#isUnclear(entry, name, seen))
        throw unclearMembers(this.#holder, path, entry, this.#namesLike(guard, entry, open));
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

  #value(entry: GuardEntry | null, at: number, path: string, levels: number): number {
    const isObject = this.#body[at] === OPEN_BRACE;
    const isList = this.#body[at] === OPEN_BRACKET;
    const within = entry?.within ?? null;
    if (entry?.kind === 'steering' && (within === null || !isObject)) this.#steering.push(entry.steering);
    const end =
      within !== null && isObject && entry !== null
        ? this.object(within, at, `${path}${entry.spellings[0]}.`, levels)
        : within?.spec.isList && isList && entry !== null
          ? this.#list(within, at, `${path}${entry.spellings[0]}`, levels)
          : endOfValue(this.#body, at, levels);
    if (entry?.isNoted && end !== -1)
      this.#noted.push({ start: at, end, path: `${path}${entry.spellings[0]}` });
    return end;
  }

  /** The same for the objects of a list. @returns the offset behind it, or -1 */
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

  /** @throws {GatewayError} for a name that is no UTF-8, which parsers read differently, or too long to be looked into */
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
      // What is no JSON is refused by whoever parses it; until then it is none of our names.
      return '';
    }
    throw new GatewayError(
      'invalid_request_body',
      `The ${this.#holder} has a member whose name is not UTF-8: send names in UTF-8 (RFC 8259 section 8.1).`,
    );
  }

  /** All names of an object that can be taken for one, in their order. */
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
 * The 400 for members that can be taken for one another, or for one that is read here.
 * @param holder what has them
 * @param path of the object that they stand in, with a dot behind it; empty for the whole
 * @param names as they came
 */
export function unclearMembers(
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

/** What cannot be seen is escaped. */
function printable(name: string): string {
  const cut = name.length > shownName ? `${name.slice(0, shownName)}…` : name;
  return Array.from(cut, (character) => {
    const code = character.charCodeAt(0);
    const isHidden = code < 0x20 || code === 0x7f || (code >= 0x80 && isUnseen(code));
    return isHidden ? `\\u${code.toString(16).padStart(4, '0')}` : character;
  }).join('');
}
