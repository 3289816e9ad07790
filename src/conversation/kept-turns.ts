import type { GatewayError } from '../errors.js';
import { isObject, type JsonObject, parseJson, parseObject, textOrNull } from '../wire/json.js';
import { withoutMembers } from '../wire/json-skip.js';

/*
 * How the calls of an endpoint go on from earlier ones: what the gateway keeps of a turn whose upstream keeps nothing,
 * how a request that names it becomes the whole request that it stands for, and who holds what was made at an upstream
 * that keeps its own. The flow finds and keeps the records; what is in them is the endpoint's.
 */

/** What is kept under an id, for the key whose call it was. */
export interface KeptRecord {
  readonly id: string;
  readonly value: string;
}

/** Where something is that an upstream keeps. */
export interface Holder {
  /** Name of the upstream, and of the model there. */
  readonly upstream: string;
  readonly model: string;
  /** Mark of the upstream's key that it was asked with; null where it has none, or it is not known. */
  readonly key: string | null;
}

/** The turn that a request adds to its conversation. */
export interface KeptTurn {
  /** Ids of the records of all turns before it, oldest first. */
  readonly before: readonly string[];
  /** What those hold, in bytes. */
  readonly bytesBefore: number;
  /** The client's part of the turn, as JSON text in the endpoint's own form. */
  readonly own: string;
  /** The same with all that was said before it, where that is to be written with it; else null. */
  readonly all: string | null;
  /** Ids of records without which a later turn is not found: they have to live as long as its own. */
  readonly needed: readonly string[];
}

/** A request of which it is known what it goes on from. */
export interface Recalled {
  /** The request with all in its place that was found; null where that is the body as it came. */
  readonly body: Buffer | null;
  /** Who alone can know what the body still names; null where nobody is known to. */
  readonly holder: Holder | null;
  /** What is told where nobody can know what the body still names; null where it names nothing any more. */
  readonly unfound: GatewayError | null;
  /** What the holder has is no turn: a target that keeps none may have it. */
  readonly isBeside: boolean;
  /** Null where the turn cannot be kept, since what came before it is not known here. */
  readonly turn: KeptTurn | null;
  /** Members that the answer repeats, and the body has no more. */
  readonly echo: JsonObject | null;
  /** JSON text of the whole input, for whoever remembers a conversation by it; null where part of it is elsewhere. */
  readonly input: string | null;
}

/** A turn with more before it is written with all of them in it, so that a conversation is found by few records. */
const mostBefore = 256;
/** Where all of a conversation is too large for one record, a turn with more before it is not kept. */
const longestChain = 4096;
/** The part of a record that a whole conversation may fill: the rest is for the reply. */
const wholeShare = 3 / 4;

/**
 * How a turn is kept that goes on from others.
 * @param said the records of what came before it
 * @param texts its own part, and that with all before it, as `KeptTurn` has them
 * @param recordBytes a record may have so many: a conversation that leaves no room there for its reply stays in many
 * @returns null for a turn that cannot be kept
 */
export function turnAfter(
  said: Pick<KeptTurn, 'before' | 'bytesBefore'>,
  texts: { readonly own: string; readonly all: () => string },
  recordBytes: number,
): KeptTurn | null {
  const { before, bytesBefore } = said;
  const whole = before.length >= mostBefore ? texts.all() : null;
  const isWhole = whole !== null && Buffer.byteLength(whole) <= recordBytes * wholeShare;
  if (!isWhole && before.length > longestChain) return null;
  return { before, bytesBefore, own: texts.own, all: isWhole ? whole : null, needed: isWhole ? [] : before };
}

/** The turn of a request that goes on from nothing. @param needed see `KeptTurn` */
export function turnAlone(own: string, needed: readonly string[] = []): KeptTurn {
  return { before: [], bytesBefore: 0, own, all: null, needed };
}

/** What a record says of its turn in every endpoint's form. */
export interface KeptChain {
  /** Bytes of this turn and of all before it. */
  readonly bytes: number;
  /** Ids of the records of the turns before it, oldest first, each of which is kept for itself. */
  readonly before: readonly string[];
}

/**
 * The value of a turn's record: a JSON text whose first member is the version of its form.
 * @param said writes what was said in the turn, as it or `all` has it, as members
 * @param name of the member with what was answered
 * @param answer its JSON text
 */
export function writeTurn(
  { before, bytesBefore, own, all }: KeptTurn,
  said: (text: string) => string,
  name: string,
  answer: string,
): string {
  const text = all ?? own;
  const bytes = (all === null ? bytesBefore : 0) + text.length + answer.length;
  const chain = `"bytes":${bytes},"before":${JSON.stringify(all === null ? before : [])}`;
  return `{"v":1,${chain},${said(text)},"${name}":${answer}}`;
}

/** What a request names of earlier turns, and how it is put in its place. */
export interface Recall {
  /** Of the records that tell more; those that are not there are null in what follows. */
  readonly ids: readonly string[];
  /**
   * @param ofOthers those of the ids that are known to be another key's
   * @returns what is told of the first that the request goes on from; null where it goes on from none of them
   */
  notTheirs(ofOthers: readonly string[]): GatewayError | null;
  /** @returns the records of the turns before those, and how many bytes they hold */
  before(found: readonly (string | null)[]): { readonly ids: readonly string[]; readonly bytes: number };
  /**
   * @param found by `ids`
   * @param before by the ids that `before` gave
   * @param recordBytes most bytes of a record
   */
  join(found: readonly (string | null)[], before: readonly (string | null)[], recordBytes: number): Recalled;
}

/** What is kept of an answer before its end leaves. */
export interface Keep {
  /** What the ids of the answer are made of; null where an upstream gives them. */
  readonly id: string | null;
  /** The client has asked for it: an answer that cannot be kept is an error. */
  readonly isAsked: boolean;
  /** What it holds of the request until then, in bytes. */
  readonly bytes: number;
  /** Members of the answer that tell of it. */
  readonly echo: JsonObject | null;
  /** See `KeptTurn`. */
  readonly needed: readonly string[];
  /** Is shown all of a stream before `records` is asked, but for the last events of one that the gateway writes. */
  readonly see: ((run: Buffer) => void) | null;
  /** What is in memory of what was seen, in bytes; absent where nothing is. */
  readonly gathered?: () => number;
  /**
   * @param end the whole answer as it leaves, or the last events of a stream; of an upstream's own stream whose protocol
   * does not note its end (`StreamRules.marksEnd`) each run of events
   * @returns nothing for an answer that nobody can go on from, or whose end has not come
   */
  records(end: Buffer, isStream: boolean): readonly KeptRecord[];
  /** What leaves in place of `end` when the records were not kept. */
  unkept(end: Buffer, isStream: boolean): Buffer;
}

/** What holds of a `Keep` that says nothing else: an upstream gives the ids, and nothing is asked of the answer. */
export const plainKeep = {
  id: null,
  isAsked: false,
  bytes: 0,
  echo: null,
  needed: [],
  see: null,
  unkept: (end) => end,
} as const satisfies Partial<Keep>;

/** What is noted of the answer of an upstream that keeps the turn itself. */
export interface HeldTurn {
  /** Waits for the answer's end, which waits for it; null where nobody has to wait. */
  readonly keep: Keep | null;
  /** Finds the answer's id as it passes, which nothing waits for; null where `keep` does. */
  readonly watch: Watch | null;
}

/**
 * Is shown an answer from its beginning: whole events of a stream, of which the last may be cut off, or what there is of
 * a whole answer.
 * @returns what is to be noted; null where it is not there yet
 */
export type Watch = (piece: Buffer, isStream: boolean) => readonly KeptRecord[] | null;

/** A call that is about to be put to a target. */
export interface KeepRequest {
  readonly body: Buffer;
  readonly recalled: Recalled | null;
  /** Makes what the ids of its answer are made of. Whoever shares a key cannot guess it. */
  readonly newId: () => string;
  /** The answer passes as the upstream gives it, under the upstream's own id and in its own events. */
  readonly isPassed?: boolean;
  /** A turn whose own part has more bytes is never kept. */
  readonly recordBytes: number;
}

/** How the calls of an endpoint go on from earlier ones. */
export interface ConversationRules {
  /** Whether a body may name parts of earlier answers within its conversation; null where none does. */
  readonly mayMention: ((body: Buffer) => boolean) | null;
  /** Only a body with a member by which it goes on (`goingOnMembers`) is of a conversation; else every one may be. */
  readonly isAsked: boolean;
  /**
   * Reads what a validated body goes on from.
   * @returns null for nothing
   * @throws {GatewayError} of status 400 for what cannot be read
   */
  recall(body: Buffer): Recall | null;
  /** What is kept of the answer of an upstream that keeps no turns; null for nothing. */
  keep(request: KeepRequest): Keep | null;
  /**
   * What is noted of the answer of an upstream that keeps the turn itself; null for nothing.
   * @param isOnly nobody but the holder can be asked to go on from it: it is noted for who asks for it by its id, and so that
   * other keys do not go on from it
   */
  hold(body: Buffer, holder: Holder, isOnly: boolean): HeldTurn | null;
  /**
   * What an upstream that keeps turns has kept besides, which a later request may name: by the last bytes of an answer.
   * Null in place of the function where it keeps nothing else.
   * @param holder is asked only where there is something
   * @returns null for nothing
   */
  readonly heldAtEnd: ((end: Buffer, holder: () => Holder) => KeptRecord | null) | null;
  /** The same for what items of an answer tell; absent where they tell of nothing. */
  readonly heldByItems?: HeldByItems;
  /**
   * The body for a target that takes the endpoint's calls as they come and keeps no turns; absent where all of these do.
   * @returns null for one that says nothing of turns
   * @throws {GatewayError} of status 400 for one that still goes on from something
   */
  readonly withoutTurns?: (body: Buffer) => Buffer | null;
}

/** What an upstream keeps for tools that run at it. */
interface HeldByItems {
  /**
   * Whether a request may name it, or its answer tell of it.
   * @param body the request
   * @param tools those of its member of that name, as JSON; null for none
   */
  isUsed(body: Buffer, tools: Buffer | null): boolean;
  /** @param run events, of which the last may be cut off, or a whole answer @returns what is to be noted of them */
  records(run: Buffer, isStream: boolean, holder: Holder): readonly KeptRecord[];
}

/** The protocols whose turns are kept: an id of one may be that of another's, too. */
type KeepingProtocol = 'responses' | 'messages';

/** Value of the record that says who holds what it stands for. */
export function writeHolder(holder: Holder, of: KeepingProtocol): string {
  return JSON.stringify({ v: 1, of, held: holder });
}

/**
 * Reads the value of a record, a JSON text whose first member `v` is the version of its form.
 * @param names of the members that a turn of the protocol has besides
 * @returns the turn with the JSON texts of these, or who holds it; null for a value of another form or protocol
 */
export function readRecord(
  value: string,
  of: KeepingProtocol,
  names: readonly string[],
): (KeptChain & { readonly texts: readonly string[] }) | Holder | null {
  const known = new Set(['v', 'of', 'held', 'bytes', 'before', ...names]);
  const taken = withoutMembers(Buffer.from(value), known)?.taken;
  const own = `"${of}"`;
  if (taken?.get('v') !== '1' || (taken.get('of') ?? own) !== own) return null;
  const held = taken.get('held');
  if (held !== undefined) return readHolder(held);
  const texts = names.flatMap((name) => taken.get(name) ?? []);
  const before = parseJson(taken.get('before') ?? '');
  if (texts.length < names.length || !Array.isArray(before)) return null;
  return { bytes: Number(taken.get('bytes')), before: before as string[], texts };
}

function readHolder(held: string): Holder | null {
  const { upstream, model, key } = parseObject(held) ?? {};
  if (typeof upstream !== 'string' || typeof model !== 'string') return null;
  return { upstream, model, key: textOrNull(key) };
}

export function isHolder<Turn extends object>(record: Turn | Holder): record is Holder {
  return 'upstream' in record;
}

/** The turns of records; null where one of them is gone. @param read reads a record's value */
export function turnsIn<Turn extends object>(
  found: readonly (string | null)[],
  read: (value: string) => Turn | Holder | null,
): readonly Turn[] | null {
  const turns: Turn[] = [];
  for (const value of found) {
    const turn = value === null ? null : read(value);
    if (turn === null || isHolder(turn)) return null;
    turns.push(turn);
  }
  return turns;
}

/** What `Recall.before` gives for the turn that is gone on from, by its record. */
export function turnsBefore(previous: KeptChain | Holder | null): ReturnType<Recall['before']> {
  if (previous === null || isHolder(previous)) return { ids: [], bytes: 0 };
  return { ids: previous.before, bytes: previous.bytes };
}

/** Ids that are looked for. Anything else was given by nobody. */
const legalId = /^[A-Za-z0-9_.:-]{1,256}$/;

export function isLegalId(id: string): boolean {
  return legalId.test(id);
}

/**
 * The id of what a body names by itself or in an object.
 * @param text of the member, as JSON
 * @returns null for none, or one that nobody was given
 */
export function namedId(text: string | undefined): string | null {
  const named: unknown = text === undefined ? null : parseJson(text);
  const id = isObject(named) ? named.id : named;
  return typeof id === 'string' && isLegalId(id) ? id : null;
}

/** An id as an error shows it: only one that somebody can have been given. */
export function shownId(id: string): string {
  return isLegalId(id) ? ` '${id}'` : '';
}
