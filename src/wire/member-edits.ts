import { invalidJson } from './json-fault.js';
import { afterColon, endOfString, endOfValue, mostDepth, skipSpace } from './json-skip.js';
import type { MemberPath, MemberRule } from './member-rule.js';

/** A name and the JSON text of a value. */
export type NamedJson = readonly [name: string, json: string];

/** What becomes of one member of an object. */
export interface MemberEdit {
  readonly name: string;
  isDropped: boolean;
  /** JSON text that takes the place of the value, or null. */
  json: string | null;
  /** An object that has no such member gets it. */
  isAdded: boolean;
  rename: string | null;
  /** Gives the text that takes the place of a value's, the same one for no change, null to leave the member out. */
  change: ((json: string) => string | null) | null;
  /** Gives the members that take its place, but for those whose names are there already; null for no change. */
  become: ((json: string) => readonly NamedJson[] | null) | null;
  /** For the members of an object. */
  within: ObjectEdits | null;
  /** For the members of each object of a list. */
  each: ObjectEdits | null;
}

/** What becomes of the members of an object. Made once, used for many bodies. */
export interface ObjectEdits {
  /** By every name under which a body may have them. */
  readonly members: Map<string, MemberEdit>;
}

/** Other names of a member that mean the same. */
export type Spelling = (name: string) => string;

export function createEdits(): ObjectEdits {
  return { members: new Map() };
}

/** The edit of the member at a path, made where there is none yet. */
export function editAt(edits: ObjectEdits, path: MemberPath, spelling: Spelling): MemberEdit {
  const [name = '', ...rest] = path;
  let edit = edits.members.get(name);
  if (edit === undefined) {
    edit = {
      name,
      isDropped: false,
      json: null,
      isAdded: false,
      rename: null,
      change: null,
      become: null,
      within: null,
      each: null,
    };
    edits.members.set(name, edit);
    edits.members.set(spelling(name), edit);
  }
  if (rest.length === 0) return edit;
  edit.within ??= createEdits();
  return editAt(edit.within, rest, spelling);
}

/**
 * Adds what a rule says to edits.
 * @param isAdded a member that is set is put where there is none
 */
export function addRule(edits: ObjectEdits, rule: MemberRule, spelling: Spelling, isAdded: boolean): void {
  if (rule.kind === 'keep') return;
  const edit = editAt(edits, rule.path, spelling);
  switch (rule.kind) {
    case 'drop':
      edit.isDropped = true;
      break;
    case 'set':
      edit.json = rule.json;
      edit.isAdded = isAdded;
      break;
    case 'rename':
      edit.rename = rule.to;
      break;
    case 'clamp':
      edit.change = (json) => clamped(json, rule.min, rule.max);
      break;
  }
}

/** A number between the bounds; what is none stays as it is. */
function clamped(json: string, min: number | null, max: number | null): string {
  const first = json.charCodeAt(0);
  const value = first === MINUS || (first >= ZERO && first <= NINE) ? Number(json) : Number.NaN;
  if (min !== null && value < min) return String(min);
  return max !== null && value > max ? String(max) : json;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Bytes of a name or of a value beyond which it is none that an edit is about. */
const longest = 4096;

/**
 * Changes members of a body without a parse: pieces of it with the new parts between them. All other bytes stay as they
 * came, and what is added stands first in its object, so that bodies that begin alike still do.
 * @param body valid JSON, an object; not changed
 * @returns the pieces in order, slices of `body` and new text; only `body` itself where nothing changes
 * @throws {GatewayError} `invalid_json` where its structure is not certain
 */
export function editMembers(body: Buffer, edits: ObjectEdits): Buffer[] {
  const walk = new Walk(body);
  walk.object(skipSpace(body, 0), edits);
  return walk.pieces();
}

/** A member of an object that is looked at. */
interface Found {
  readonly start: number;
  readonly nameEnd: number;
  readonly value: number;
  readonly end: number;
  readonly name: string;
  readonly edit: MemberEdit | null;
}

/** One look at a body, from its beginning to its end. */
class Walk {
  readonly #body: Buffer;
  readonly #pieces: Buffer[] = [];
  /** Everything before it is in the pieces. */
  #done = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  pieces(): Buffer[] {
    if (this.#pieces.length === 0) return [this.#body];
    if (this.#done < this.#body.length) this.#pieces.push(this.#body.subarray(this.#done));
    return this.#pieces;
  }

  object(open: number, edits: ObjectEdits): void {
    const found = this.#members(open, edits);
    const fates = found.map((member) => this.#fate(member, found, edits));
    const last = fates.findLastIndex((fate) => fate !== null);
    this.#add(open + 1, found, edits, last !== -1);
    for (const [index, member] of found.entries()) {
      const fate = fates[index] ?? null;
      if (fate !== null) this.#write(member, fate, edits);
      // With the comma behind it, or the one before it where no member follows.
      else if (index < last) this.#replace(member.start, found[index + 1]?.start ?? member.end, '');
      else this.#replace(found[index - 1]?.end ?? member.start, member.end, '');
    }
  }

  #members(open: number, edits: ObjectEdits): readonly Found[] {
    const body = this.#body;
    const found: Found[] = [];
    if (body[open] !== OPEN_BRACE) throw invalidJson(body);
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACE) return found;
    for (;;) {
      const close = body[at] === QUOTE ? endOfString(body, at + 1) : -1;
      const value = close === -1 ? -1 : afterColon(body, close);
      const end = value === -1 ? -1 : endOfValue(body, value, defaultScanLimits.maxDepth);
      if (end === -1) throw invalidJson(body);
      const name = this.#name(at, close + 1);
      found.push({
        start: at,
        nameEnd: close + 1,
        value,
        end,
        name,
        edit: edits.members.get(name) ?? null,
      });
      at = skipSpace(body, end);
      if (body[at] === CLOSE_BRACE) return found;
      if (body[at] !== COMMA) throw invalidJson(body);
      at = skipSpace(body, at + 1);
    }
  }

  #name(start: number, end: number): string {
    if (end - start > longest) return '';
    const text = this.#body.toString('utf8', start, end);
    return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
  }

  /** The JSON text of a value, where it is short enough to be what an edit is about. */
  #text({ value, end }: Found): string | null {
    return end - value > longest ? null : this.#body.toString('utf8', value, end);
  }

  /** @returns null for a member that is left out */
  #fate(member: Found, all: readonly Found[], { members }: ObjectEdits): Fate | null {
    const { name, edit } = member;
    if (edit === null) return unchanged;
    const { rename } = edit;
    const has = (other: string): boolean => all.some((each) => each.name === other);
    if (edit.isDropped || (rename !== null && has(rename))) return null;
    const text = this.#text(member);
    if (edit.json !== null) return edit.json === text ? unchanged : { ...unchanged, json: edit.json };
    const then = rename === null ? null : (members.get(rename)?.change ?? null);
    const changed = text === null ? null : applied(then, applied(edit.change, text));
    if (text === null) return { ...unchanged, rename };
    if (changed === null) return null;
    const become = edit.become?.(changed) ?? null;
    if (become === null) return { ...unchanged, rename, json: changed === text ? null : changed };
    const others = become.filter(([other]) => other === name || !has(other));
    return others.length === 0 ? null : { ...unchanged, members: others };
  }

  #write(member: Found, { rename, json, members }: Fate, { members: all }: ObjectEdits): void {
    if (members !== null) {
      this.#replace(member.start, member.end, members.map(memberText).join(','));
      return;
    }
    if (rename !== null) this.#replace(member.start, member.nameEnd, JSON.stringify(rename));
    if (json !== null) {
      this.#replace(member.value, member.end, json);
      return;
    }
    const { edit } = member;
    if (edit === null) return;
    const within = edit.within ?? (rename === null ? null : (all.get(rename)?.within ?? null));
    const first = this.#body[member.value];
    if (within !== null && first === OPEN_BRACE) this.object(member.value, within);
    else if (within !== null && this.#text(member) === 'null') {
      const made = madeObject(within);
      if (made !== null) this.#replace(member.value, member.end, made);
    } else if (edit.each !== null && first === OPEN_BRACKET) this.#list(member.value, edit.each);
  }

  #list(open: number, edits: ObjectEdits): void {
    const body = this.#body;
    let at = skipSpace(body, open + 1);
    while (body[at] !== CLOSE_BRACKET) {
      const end = endOfValue(body, at, defaultScanLimits.maxDepth);
      if (end === -1) throw invalidJson(body);
      if (body[at] === OPEN_BRACE) this.object(at, edits);
      at = skipSpace(body, end);
      if (body[at] === COMMA) at = skipSpace(body, at + 1);
    }
  }

  /** Puts what an object lacks before its first member. */
  #add(at: number, found: readonly Found[], edits: ObjectEdits, hasMore: boolean): void {
    const lacking = [...new Set(edits.members.values())].filter(
      (edit) => !found.some((member) => member.edit === edit),
    );
    const text = lacking.flatMap((edit) => madeMember(edit) ?? []).join(',');
    if (text !== '') this.#replace(at, at, hasMore ? `${text},` : text);
  }

  #replace(start: number, end: number, text: string): void {
    const body = this.#body;
    if (start > this.#done) this.#pieces.push(body.subarray(this.#done, start));
    if (text !== '') this.#pieces.push(Buffer.from(text));
    this.#done = end;
  }
}

/** What stands in the place of a member. */
interface Fate {
  readonly rename: string | null;
  /** Text of its value, or null where that stays, or is looked into. */
  readonly json: string | null;
  /** Members in its place, or null. */
  readonly members: readonly NamedJson[] | null;
}

/** @param json null for a member that is left out already */
function applied(change: MemberEdit['change'], json: string | null): string | null {
  return change === null || json === null ? json : change(json);
}

const unchanged: Fate = { rename: null, json: null, members: null };

function memberText([name, json]: NamedJson): string {
  return `${JSON.stringify(name)}:${json}`;
}

/** The member that an object gets that lacks it, or null. */
function madeMember({ name, json, isAdded, within }: MemberEdit): string | null {
  const made = isAdded ? json : within === null ? null : madeObject(within);
  return made === null ? null : memberText([name, made]);
}

function madeObject({ members }: ObjectEdits): string | null {
  const made = [...new Set(members.values())].flatMap((edit) => madeMember(edit) ?? []);
  return made.length === 0 ? null : `{${made.join(',')}}`;
}
