import type { GatewayError } from '../errors.js';
import { isObject, type JsonObject, parseJson, parseObject, textOrNull } from '../wire/json.js';
import { withoutMembers } from '../wire/json-skip.js';
import type { TextProtocolName } from './request.js';

/*
 * How the calls of an endpoint continue earlier ones: what the gateway keeps of a turn if its upstream keeps nothing,
 * how a request that names a kept turn is expanded to the whole request, and which upstream holds what it keeps itself.
 * The flow finds and stores the records. Their contents are up to the endpoint.
 */

/** A record that is kept under an id, for the key that made the call. */
export interface KeptRecord {
  readonly id: string;
  readonly value: string;
}

/** The place of something that an upstream keeps. */
export interface Holder {
  /** Name of the upstream. */
  readonly upstream: string;
  readonly model: string;
  /** Mark of the upstream's key that was used. Null if it has none, or if it is not known. */
  readonly key: string | null;
}

/** The turn that a request adds to its conversation. */
export interface KeptTurn {
  /** Ids of the records of all earlier turns, oldest first. */
  readonly before: readonly string[];
  /** Size of those records in bytes. */
  readonly bytesBefore: number;
  /** The client's part of the turn, as JSON text in the endpoint's own form. */
  readonly own: string;
  /** The same preceded by the whole conversation, if the record is to contain all of it. Else null. */
  readonly all: string | null;
  /** Ids of records that later turns depend on. They must live as long as this turn's own. */
  readonly needed: readonly string[];
}

/** A request after its references to earlier turns were resolved. */
export interface Recalled {
  /** The request with everything that was found inserted. Null if the body is unchanged. */
  readonly body: Buffer | null;
  /** The only upstream that can resolve what the body still refers to. Null if none is known. */
  readonly holder: Holder | null;
  /** The error if nothing can resolve what the body still refers to. Null if it refers to nothing more. */
  readonly unfound: GatewayError | null;
  /** What the holder has is not a turn, so that a target that keeps no turns may be used. */
  readonly isBeside: boolean;
  /** Null if the turn cannot be kept because the gateway does not know what precedes it. */
  readonly turn: KeptTurn | null;
  /** Members that the answer repeats but that are no longer in the body. */
  readonly echo: JsonObject | null;
  /** JSON text of the whole input, with which a socket continues its history. Null if part of it is elsewhere. */
  readonly input: string | null;
}

/** A record after more turns than this contains the whole conversation, so that it can be restored from few records. */
const mostBefore = 256;
/** If the whole conversation does not fit in a record, a turn after more turns than this is not kept. */
const longestChain = 4096;
/** Part of a record that a whole conversation may fill. The rest is for the answer. */
const wholeShare = 3 / 4;

/**
 * Makes the kept form of a turn that continues others.
 * @param earlier the records of the earlier turns
 * @param texts the values of `own` and `all` in `KeptTurn`
 * @param recordBytes maximum size of a record. A conversation that leaves no room for its answer stays in several
 * records
 * @returns null if the turn cannot be kept
 */
export function turnAfter(
  earlier: Pick<KeptTurn, 'before' | 'bytesBefore'>,
  texts: { readonly own: string; readonly all: () => string },
  recordBytes: number,
): KeptTurn | null {
  const { before, bytesBefore } = earlier;
  const whole = before.length >= mostBefore ? texts.all() : null;
  const isWhole = whole !== null && Buffer.byteLength(whole) <= recordBytes * wholeShare;
  if (!isWhole && before.length > longestChain) return null;
  return { before, bytesBefore, own: texts.own, all: isWhole ? whole : null, needed: isWhole ? [] : before };
}

/** Makes the kept form of a turn that continues nothing. @param needed see `KeptTurn` */
export function turnAlone(own: string, needed: readonly string[] = []): KeptTurn {
  return { before: [], bytesBefore: 0, own, all: null, needed };
}

/** Members that the record of a turn has for every endpoint. */
export interface KeptChain {
  /** Size of this turn and all earlier ones in bytes. */
  readonly bytes: number;
  /** Ids of the records of the earlier turns, oldest first. Each is a record of its own. */
  readonly before: readonly string[];
}

/**
 * Makes the value of a turn's record: a JSON text whose first member is the version of its format.
 * @param said writes `own` or `all` as members
 * @param name name of the member for the answer
 * @param answer JSON text of the answer
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

/** References of a request to earlier turns, and how to resolve them. */
export interface Recall {
  /** Ids of the records to read. Missing records are null in the arguments of the other methods. */
  readonly ids: readonly string[];
  /**
   * @param ofOthers those of the ids that are known to belong to another key
   * @returns the error for the first of these that the request continues, or null if it continues none of them
   */
  notTheirs(ofOthers: readonly string[]): GatewayError | null;
  /** @returns the records of the turns before the found ones, and their size in bytes */
  before(found: readonly (string | null)[]): { readonly ids: readonly string[]; readonly bytes: number };
  /**
   * @param found the records of `ids`
   * @param before the records of the ids that `before` returned
   * @param recordBytes maximum size of a record
   */
  join(found: readonly (string | null)[], before: readonly (string | null)[], recordBytes: number): Recalled;
}

/** What is kept of an answer, before its end is sent. */
export interface Keep {
  /** Base of the answer's ids. Null if an upstream assigns them. */
  readonly id: string | null;
  /** The client asked to keep the answer: it is an error if it cannot be kept. */
  readonly isAsked: boolean;
  /** Bytes of the request that are held until then. */
  readonly bytes: number;
  /** Members of the answer that state how it is kept. */
  readonly echo: JsonObject | null;
  /** See `KeptTurn`. */
  readonly needed: readonly string[];
  /**
   * Called with all of a stream before `records` is called, except for the last events of a stream that the gateway
   * writes.
   */
  readonly see: ((run: Buffer) => void) | null;
  /** Returns the size of the recorded data in memory, in bytes. Absent if there is none. */
  readonly gathered?: () => number;
  /**
   * @param end the whole answer as it is sent, or the last events of a stream. For an upstream's own stream whose
   * protocol does not detect its end (`StreamRules.marksEnd`), each run of events. Events of it that are too large to be
   * passed on whole have no long texts here
   * @returns nothing for an answer that cannot be continued, or before its end
   */
  records(end: Buffer, isStream: boolean): readonly KeptRecord[];
  /** Returns what is sent in place of `end` if the records could not be stored. */
  unkept(end: Buffer, isStream: boolean): Buffer;
}

/** Defaults of a `Keep`: an upstream assigns the ids, and the client does not require the answer to be kept. */
export const plainKeep = {
  id: null,
  isAsked: false,
  bytes: 0,
  echo: null,
  needed: [],
  see: null,
  unkept: (end) => end,
} as const satisfies Partial<Keep>;

/** What is recorded of the answer of an upstream that keeps the turn itself. */
export interface HeldTurn {
  /** Handles the answer's end, which is delayed until its records are stored. Null if nothing needs to wait. */
  readonly keep: Keep | null;
  /** Finds the answer's id as it passes, without delaying the answer. Null if `keep` does so. */
  readonly watch: Watch | null;
}

/**
 * Called with an answer from its beginning: events of a stream, of which the last may be incomplete, or the part of a
 * whole answer that has arrived.
 * @returns the records to store, or null if they are not known yet
 */
export type Watch = (piece: Buffer, isStream: boolean) => readonly KeptRecord[] | null;

/** A call that is about to be sent to a target. */
export interface KeepRequest {
  readonly body: Buffer;
  readonly recalled: Recalled | null;
  /** Makes the base of the answer's ids. Other users of the same key cannot guess it. */
  readonly newId: () => string;
  /** The answer is passed through with the upstream's own id and events. */
  readonly isPassed: boolean;
  /** A turn is not kept if its own part has more bytes. */
  readonly recordBytes: number;
}

/** How the calls of an endpoint continue earlier ones. */
export interface ConversationRules {
  /**
   * Whether a body may refer to parts of earlier answers within its conversation. Null if no body can.
   * @param completes see `recall`
   */
  readonly mayMention: ((body: Buffer, completes: boolean) => boolean) | null;
  /** Only a turn that continues something is kept. If false, every turn may be. */
  readonly onlyContinuing: boolean;
  /**
   * Reads which earlier turns a validated body continues.
   * @param completes whether its upstream may complete items of the input by their ids, which are recorded here
   * @returns null for none
   * @throws {GatewayError} with status 400 if they cannot be read
   */
  recall(body: Buffer, completes: boolean): Recall | null;
  /** Returns what to keep of the answer of an upstream that keeps no turns. Null for nothing. */
  keep(request: KeepRequest): Keep | null;
  /**
   * Returns what to record of the answer of an upstream that keeps the turn itself. Null for nothing.
   * @param isOnly only the holder can continue the turn. It is recorded so that it can be fetched by its id and other
   * keys cannot continue it
   */
  hold(body: Buffer, holder: Holder, isOnly: boolean): HeldTurn | null;
  /**
   * Reads from the last bytes of an answer what else its upstream has kept that a later request may refer to. The
   * function is null if upstreams keep nothing else.
   * @param holder only called if there is something
   * @returns null for nothing
   */
  readonly heldAtEnd: ((end: Buffer, holder: () => Holder) => KeptRecord | null) | null;
  /** The same for what items of an answer report. Absent if they report nothing. */
  readonly heldByItems?: HeldByItems;
  /**
   * Makes the body for a target that takes the endpoint's calls unchanged and keeps no turns. Absent if all of these
   * targets keep turns.
   * @returns null if the body has no members about turns
   * @throws {GatewayError} with status 400 if the body still continues something
   */
  readonly withoutTurns?: (body: Buffer) => Buffer | null;
}

/** What an upstream keeps for the tools that it runs. */
interface HeldByItems {
  /**
   * Whether a request may refer to it, or its answer report it.
   * @param body the request
   * @param tools JSON text of the request's `tools`; null for none
   * @param itemTools whether items of its input bring tools
   */
  isUsed(body: Buffer, tools: Buffer | null, itemTools: boolean): boolean;
  /** @param run events, of which the last may be incomplete, or a whole answer @returns the records to store */
  records(run: Buffer, isStream: boolean, holder: Holder): readonly KeptRecord[];
}

/** Makes the value of a record that names a holder. @param of protocol of the turn: ids of several may coincide */
export function writeHolder(holder: Holder, of: TextProtocolName): string {
  return JSON.stringify({ v: 1, of, held: holder });
}

/**
 * Reads the value of a record: a JSON text whose first member, `v`, is the version of its format.
 * @param names further members of a turn's record in the protocol
 * @returns the turn with the JSON texts of these members, or the holder. Null for another version or protocol
 */
export function readRecord(
  value: string,
  of: TextProtocolName,
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

/** Returns the turns in some records, or null if one of the records is missing. @param read reads a record's value */
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

/** Returns the result of `Recall.before` for the record of the turn that a request continues. */
export function turnsBefore(previous: KeptChain | Holder | null): ReturnType<Recall['before']> {
  if (previous === null || isHolder(previous)) return { ids: [], bytes: 0 };
  return { ids: previous.before, bytes: previous.bytes };
}

/** Ids that are looked up. No others can have been assigned. */
const legalId = /^[A-Za-z0-9_.:-]{1,256}$/;

export function isLegalId(id: string): boolean {
  return legalId.test(id);
}

const visible = /^[!-~]*$/;

/**
 * Whether no upstream can have assigned an id, because it contains white space, control characters or others than ASCII.
 * An upstream that drops or converts these would find the object of another id, which has not been looked up.
 */
export function isStrangeId(id: string): boolean {
  return !visible.test(id);
}

/**
 * Returns the id of an object that a body names by its id alone or by an object with the id.
 * @param text JSON text of the member
 * @returns null for none, and for an id that is not looked up. A strange id is returned
 */
export function namedId(text: string | undefined): string | null {
  const named: unknown = text === undefined ? null : parseJson(text);
  const id = isObject(named) ? named.id : named;
  return typeof id === 'string' && (isLegalId(id) || isStrangeId(id)) ? id : null;
}

/** Formats an id for an error message. Returns an empty string for an id that cannot have been assigned. */
export function shownId(id: string): string {
  return isLegalId(id) ? ` '${id}'` : '';
}
