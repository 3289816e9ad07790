import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  LOWER_N,
  MINUS,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  ZERO,
} from './bytes.js';
import { parseJson, textOrNull } from './json.js';
import { invalidJson } from './json-fault.js';
import { afterColon, endOfString, endOfValue, mostDepth, skipSpace } from './json-skip.js';

/** A name and the JSON text of a value. */
type NamedJson = readonly [name: string, json: string];

/** How one member of an object is changed. */
export interface MemberEdit {
  readonly name: string;
  isDropped: boolean;
  /** JSON text that replaces the value, or null. */
  json: string | null;
  /** Whether the member is added to an object that lacks it. */
  isAdded: boolean;
  rename: string | null;
  /** Returns the new text of a value, the same text for no change, or null to remove the member. */
  change: ((json: string) => string | null) | null;
  /**
   * Returns the members that replace this one, or null for no change. Members whose names already exist are not added.
   */
  become: ((json: string) => readonly NamedJson[] | null) | null;
  /** Edits for the members of the value, if it is an object. */
  within: ObjectEdits | null;
  /** Edits for the members of each object in the value, if it is a list. */
  each: ObjectEdits | null;
  /** Added to the value, if it is a list and nothing else changes it. */
  lead: Lead | null;
}

/** An element to add before the others of a list, by the `type` that they have. */
interface Lead {
  readonly json: string;
  /** Only if an element has this type. */
  readonly beside: string;
  /** Only if none has one of these. */
  readonly unless: readonly string[];
  /** Only if a member beside the list has this word. */
  readonly where: { readonly name: string; readonly word: string };
  /** Whether nothing is added to any list of a body. */
  readonly isOff: (body: Buffer) => boolean;
}

/** How the members of an object are changed. Created once, used for many bodies. */
export interface ObjectEdits {
  /** Edits by every name that a body may use for the member. */
  readonly members: Map<string, MemberEdit>;
}

/** Returns the alternative name of a member. */
export type Spelling = (name: string) => string;

export function createEdits(): ObjectEdits {
  return { members: new Map() };
}

/** In a path, stands for each object in a list. */
export const eachObject = '[]';

/** Returns the edit of the member at a path, which is created if there is none. */
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
      lead: null,
    };
    edits.members.set(name, edit);
    edits.members.set(spelling(name), edit);
  }
  if (rest.length === 0) return edit;
  if (rest[0] === eachObject) {
    edit.each ??= createEdits();
    return editAt(edit.each, rest.slice(1), spelling);
  }
  edit.within ??= createEdits();
  return editAt(edit.within, rest, spelling);
}

/**
 * Adds a rule to edits.
 * @param isAdded whether `set` also adds a member that is missing
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

/** Clamps a number to the bounds. Anything else stays unchanged. */
function clamped(json: string, min: number | null, max: number | null): string {
  const first = json.charCodeAt(0);
  const value = first === MINUS || (first >= ZERO && first <= NINE) ? Number(json) : Number.NaN;
  if (min !== null && value < min) return String(min);
  return max !== null && value > max ? String(max) : json;
}

/** Maximum length of a name or value that edits apply to, in bytes. */
const longest = 4096;

export type OnLost = (path: string) => void;

/**
 * Changes members of a body without parsing it. All other bytes stay unchanged. Members are added at the start of their
 * object, so that bodies with a common start still have one afterwards.
 * @param body valid JSON, an object; not modified
 * @param onLost called with the path of each removed member: the names of the objects around it, from the innermost
 *   list on
 * @returns the pieces in order: slices of `body` and new text; only `body` itself if nothing changes
 * @throws {GatewayError} `invalid_json` if the structure of the body is not certain
 */
export function editMembers(body: Buffer, edits: ObjectEdits, onLost: OnLost | null = null): Buffer[] {
  const walk = new Walk(body, onLost);
  walk.object(skipSpace(body, 0), edits, '');
  return walk.pieces();
}

/** A member of the current object. */
interface Found {
  readonly start: number;
  readonly nameEnd: number;
  readonly value: number;
  readonly end: number;
  readonly name: string;
  readonly edit: MemberEdit | null;
}

/** A range of the body, and its new text. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** One pass over a body. */
class Walk {
  readonly #body: Buffer;
  readonly #onLost: OnLost | null;
  /** Replacements, which do not overlap. Those within an object are added before those around it. */
  readonly #replacements: Replacement[] = [];
  /** Whether leads are added to lists of this body; null until one may be. */
  #hasLeads: boolean | null = null;

  constructor(body: Buffer, onLost: OnLost | null) {
    this.#body = body;
    this.#onLost = onLost;
  }

  pieces(): Buffer[] {
    const body = this.#body;
    if (this.#replacements.length === 0) return [body];
    const pieces: Buffer[] = [];
    let done = 0;
    // At the same offset, an insertion precedes a replacement.
    for (const { start, end, text } of this.#replacements.sort(
      (a, b) => a.start - b.start || a.end - b.end,
    )) {
      if (start > done) pieces.push(body.subarray(done, start));
      if (text !== '') pieces.push(Buffer.from(text));
      done = end;
    }
    if (done < body.length) pieces.push(body.subarray(done));
    return pieces;
  }

  /**
   * Edits an object.
   * @param within names of the objects around its members, each followed by a dot
   * @returns the offset after the object
   */
  object(open: number, edits: ObjectEdits, within: string): number {
    const found: Found[] = [];
    const objectEnd = this.#readMembers(open, edits, within, found);
    const names = new Names(found);
    const fates = found.map((member) => this.#fate(member, names, edits));
    const last = fates.findLastIndex((fate) => fate !== null);
    this.#add(open + 1, found, edits, last !== -1);
    for (const [index, member] of found.entries()) {
      const fate = fates[index] ?? null;
      if (fate === null) this.#onLost?.(within + member.name);
      if (fate === unchanged) this.#lead(member, found);
      if (fate !== null) this.#write(member, fate, edits, within);
      // A member is removed with the comma after it, or with the one before it if no member follows.
      else if (index < last) this.#replace(member.start, found[index + 1]?.start ?? member.end, '');
      else this.#replace(found[index - 1]?.end ?? member.start, member.end, '');
    }
    return objectEnd;
  }

  #readMembers(open: number, edits: ObjectEdits, within: string, found: Found[]): number {
    const body = this.#body;
    if (body[open] !== OPEN_BRACE) throw invalidJson(body);
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      const close = body[at] === QUOTE ? endOfString(body, at + 1) : -1;
      const value = close === -1 ? -1 : afterColon(body, close);
      if (value === -1) throw invalidJson(body);
      const name = this.#name(at, close + 1);
      const edit = edits.members.get(name) ?? null;
      const isRead = edit !== null && isOnlyRead(edit);
      const end = isRead ? this.#inside(value, edit, edit.within, `${within}${name}.`) : this.#end(value);
      found.push({ start: at, nameEnd: close + 1, value, end, name, edit });
      at = skipSpace(body, end);
      if (body[at] === CLOSE_BRACE) return at + 1;
      if (body[at] !== COMMA) throw invalidJson(body);
      at = skipSpace(body, at + 1);
    }
  }

  #end(value: number): number {
    const end = endOfValue(this.#body, value, mostDepth);
    if (end === -1) throw invalidJson(this.#body);
    return end;
  }

  /** Edits the members within a value of any kind. @returns the offset after the value */
  #inside(value: number, { each }: MemberEdit, within: ObjectEdits | null, path: string): number {
    const first = this.#body[value];
    if (within !== null && first === OPEN_BRACE) return this.object(value, within, path);
    if (first === OPEN_BRACKET && each !== null) return this.#list(value, each);
    const end = this.#end(value);
    const made = within !== null && first === LOWER_N ? madeObject(within) : null;
    if (made !== null) this.#replace(value, end, made);
    return end;
  }

  #list(open: number, edits: ObjectEdits): number {
    const body = this.#body;
    let at = skipSpace(body, open + 1);
    if (body[at] === CLOSE_BRACKET) return at + 1;
    for (;;) {
      at = skipSpace(body, body[at] === OPEN_BRACE ? this.object(at, edits, '') : this.#end(at));
      if (body[at] === CLOSE_BRACKET) return at + 1;
      if (body[at] !== COMMA) throw invalidJson(body);
      at = skipSpace(body, at + 1);
    }
  }

  /** Adds an element before the first of a list. @param beside members of its object */
  #lead({ edit, value }: Found, beside: readonly Found[]): void {
    const lead = edit?.lead ?? null;
    if (lead === null || this.#body[value] !== OPEN_BRACKET) return;
    const judging = beside.find(({ name }) => name === lead.where.name);
    if (judging === undefined || wordIn(this.#text(judging)) !== lead.where.word) return;
    const types = new Set<string | null>();
    const read = createEdits();
    editAt(read, ['type'], (name) => name).change = (type) => {
      types.add(wordIn(type));
      return type;
    };
    this.#list(value, read);
    if (!types.has(lead.beside) || lead.unless.some((type) => types.has(type))) return;
    this.#hasLeads ??= !lead.isOff(this.#body);
    if (this.#hasLeads) this.#replace(value + 1, value + 1, `${lead.json},`);
  }

  #name(start: number, end: number): string {
    if (end - start > longest) return '';
    const text = this.#body.toString('utf8', start, end);
    return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
  }

  /** Returns the JSON text of a value, or null if it is too long for an edit. */
  #text({ value, end }: Found): string | null {
    return end - value > longest ? null : this.#body.toString('utf8', value, end);
  }

  /** @returns null for a member that is removed */
  #fate(member: Found, names: Names, { members }: ObjectEdits): Fate | null {
    const { name, edit } = member;
    if (edit === null || isOnlyRead(edit)) return unchanged;
    const { rename } = edit;
    if (edit.isDropped || (rename !== null && names.has(rename))) return null;
    const text = this.#text(member);
    if (edit.json !== null) return edit.json === text ? unchanged : { ...unchanged, json: edit.json };
    if (text === null) return { ...unchanged, rename };
    const then = rename === null ? null : (members.get(rename)?.change ?? null);
    const changed = applied(then, applied(edit.change, text));
    if (changed === null) return null;
    const become = edit.become?.(changed) ?? null;
    if (become === null) return { ...unchanged, rename, json: changed === text ? null : changed };
    const others = become.filter(
      ([other]) => other === name || !(names.has(other) || isDecided(members.get(other))),
    );
    return others.length === 0 ? null : { ...unchanged, members: others };
  }

  #write(member: Found, { rename, json, members }: Fate, edits: ObjectEdits, path: string): void {
    const { start, nameEnd, value, end, name, edit } = member;
    if (members !== null) this.#replace(start, end, members.map(memberText).join(','));
    if (rename !== null) this.#replace(start, nameEnd, JSON.stringify(rename));
    if (json !== null) this.#replace(value, end, json);
    if (edit === null || isOnlyRead(edit) || edit.json !== null || json !== null || members !== null) return;
    const renamed = rename === null ? null : (edits.members.get(rename)?.within ?? null);
    this.#inside(value, edit, edit.within ?? renamed, `${path}${name}.`);
  }

  /** Adds missing members before the first member of an object. */
  #add(at: number, found: readonly Found[], { members }: ObjectEdits, hasMore: boolean): void {
    const had = new Set(found.map(({ edit }) => edit));
    const lacking = [...new Set(members.values())].filter((edit) => !had.has(edit));
    const text = lacking.flatMap((edit) => madeMember(edit) ?? []).join(',');
    if (text !== '') this.#replace(at, at, hasMore ? `${text},` : text);
  }

  #replace(start: number, end: number, text: string): void {
    this.#replacements.push({ start, end, text });
  }
}

/** Returns the text of a JSON string, however it is written; null for anything else. */
function wordIn(json: string | null): string | null {
  if (json === null || !json.startsWith('"')) return null;
  return json.includes('\\') ? textOrNull(parseJson(json)) : json.slice(1, -1);
}

/** The names of an object's members. The set is built only when a name may collide. */
class Names {
  readonly #found: readonly Found[];
  #names: Set<string> | null = null;

  constructor(found: readonly Found[]) {
    this.#found = found;
  }

  has(name: string): boolean {
    this.#names ??= new Set(this.#found.map((member) => member.name));
    return this.#names.has(name);
  }
}

/** Whether an edit leaves the member itself unchanged, and only applies to what is within it. */
function isOnlyRead({ isDropped, json, rename, change, become }: MemberEdit): boolean {
  return !isDropped && json === null && rename === null && change === null && become === null;
}

/** What replaces a member. */
interface Fate {
  readonly rename: string | null;
  /** New text of the value, or null if it stays or is edited within. */
  readonly json: string | null;
  /** Members that replace this one, or null. */
  readonly members: readonly NamedJson[] | null;
}

/** @param json null for a member that is already removed */
function applied(change: MemberEdit['change'], json: string | null): string | null {
  return change === null || json === null ? json : change(json);
}

const unchanged: Fate = { rename: null, json: null, members: null };

function memberText([name, json]: NamedJson): string {
  return `${JSON.stringify(name)}:${json}`;
}

/** Whether a member has a rule of its own, so that nothing else may create it. */
function isDecided(edit: MemberEdit | undefined): boolean {
  return edit !== undefined && (edit.isDropped || madeMember(edit) !== null);
}

/** Returns the member to add to an object that lacks it, or null. */
function madeMember({ name, json, isAdded, within }: MemberEdit): string | null {
  const made = isAdded ? json : within === null ? null : madeObject(within);
  return made === null ? null : memberText([name, made]);
}

function madeObject({ members }: ObjectEdits): string | null {
  const made = [...new Set(members.values())].flatMap((edit) => madeMember(edit) ?? []);
  return made.length === 0 ? null : `{${made.join(',')}}`;
}

/** Path of a member within a JSON object, such as `['generationConfig', 'topK']` or `['input', '[]', 'phase']`. */
export type MemberPath = readonly string[];

/** How one member of a body is changed. */
export type MemberRule =
  /** Leaves the member unchanged, and overrides rules of lower precedence. */
  | { readonly kind: 'keep'; readonly path: MemberPath }
  | { readonly kind: 'drop'; readonly path: MemberPath }
  /** Sets the value, whether or not the member exists. */
  | { readonly kind: 'set'; readonly path: MemberPath; readonly json: string }
  /** Renames the member within its object. If a member with the new name exists, it stays, and this one is removed. */
  | { readonly kind: 'rename'; readonly path: MemberPath; readonly to: string }
  /** Clamps a number to two bounds, one of which may be null. */
  | {
      readonly kind: 'clamp';
      readonly path: MemberPath;
      readonly min: number | null;
      readonly max: number | null;
    };

/** Returns the paths that a rule affects: that of its member, and the new one for a rename. */
export function placesOf(rule: MemberRule): readonly MemberPath[] {
  return rule.kind === 'rename' ? [rule.path, [...rule.path.slice(0, -1), rule.to]] : [rule.path];
}

/**
 * Whether two rules conflict: they affect the same member, or one affects an object that contains the other's member.
 * Clamping the result of a rename is not a conflict.
 */
export function clash(one: MemberRule, other: MemberRule): boolean {
  const [from, to] = placesOf(one);
  const [otherFrom, otherTo] = placesOf(other);
  for (const place of [from, to]) {
    for (const otherPlace of [otherFrom, otherTo]) {
      if (place === undefined || otherPlace === undefined || !begins(place, otherPlace)) continue;
      const isClampedName =
        place.length === otherPlace.length &&
        ((place === to && other.kind === 'clamp') || (otherPlace === otherTo && one.kind === 'clamp'));
      if (!isClampedName) return true;
    }
  }
  return false;
}

/** Whether one of two paths is a prefix of the other. */
function begins(one: MemberPath, other: MemberPath): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.every((name, index) => name === long[index]);
}
