import { afterColon, endOfNumber, endOfString, standsAt } from '../../wire/json-skip.js';
import { isPlainAscii } from '../../wire/plain-text.js';

/** Where an event's type stands: before everything that may be long, but for servers that sort their members. */
const typeWithin = 256;

/** A client asks for a response. */
const responseCreate = 'response.create';
/** A response has ended. */
export const responseDone = 'response.done';
/** What the client has said, as text. */
export const transcribed = 'conversation.item.input_audio_transcription.completed';

const typeKey = Buffer.from('"type"');
const quote = 0x22;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const colon = 0x3a;
const letterT = 0x74;
const letterP = 0x70;
const letterR = 0x72;
const letterC = 0x63;
const letterV = 0x76;
/** How far behind its first letter the second word of `response.done` begins. */
const secondWord = 'response.'.length;
const seconds = [...'dc'].map((letter) => letter.charCodeAt(0));

/**
 * Whether the type of a server event may be one of those that are looked for here and in `OpenUsage`: false for nearly
 * all of them, pieces of sound and text, by a look at the letters behind the first quotes.
 */
export function mayTellUsage(event: Buffer): boolean {
  const end = Math.min(event.length, typeWithin);
  let hasType = false;
  let isWithin = false;
  for (let at = 0; at < end; at++) {
    const byte = event[at];
    // What stands behind an inner bracket is no member of the event's, as far as these bytes tell.
    if (byte !== quote) isWithin ||= at > 0 && (byte === openBrace || byte === openBracket);
    else if (mayBeOfUsage(event, at + 1)) return true;
    else
      hasType ||=
        !isWithin &&
        event[at + 1] === letterT &&
        event[at + 3] === letterP &&
        event[at + 5] === quote &&
        // Else it is an id that a client has called so.
        event[at + 6] === colon;
  }
  return !hasType;
}

/** The same for a type that begins at a place. */
function mayBeOfUsage(event: Buffer, at: number): boolean {
  const first = event[at];
  // Of `conversation`, which `content_index` is not.
  if (first === letterC) return event[at + 3] === letterV;
  return first === letterR && seconds.includes(event[at + secondWord] as number);
}

/**
 * The type of an event as it is written; empty where it has none. No name of a type that stands elsewhere counts as its own: clients
 * choose the ids of items, which come back in events.
 */
export function typeOfEvent(event: Buffer): string {
  let depth = 0;
  for (let at = 0; at < event.length; at++) {
    const byte = event[at];
    if (byte === openBrace || byte === openBracket) depth++;
    else if (byte === closeBrace || byte === closeBracket) depth--;
    else if (byte === quote) {
      const close = endOfString(event, at + 1);
      if (close === -1) return '';
      const value = depth === 1 && isTypeKey(event, at, close) ? afterColon(event, close) : -1;
      if (value !== -1) return textAt(event, value);
      at = close;
    }
  }
  return '';
}

/** @returns the string that begins at a place, or an empty one where there is none, or not its end */
function textAt(bytes: Buffer, at: number): string {
  const close = bytes[at] === quote ? endOfString(bytes, at + 1) : -1;
  return close === -1 ? '' : bytes.toString('latin1', at + 1, close);
}

function isTypeKey(event: Buffer, at: number, close: number): boolean {
  return close - at === typeKey.length - 1 && event.compare(typeKey, 0, typeKey.length, at, close + 1) === 0;
}

/**
 * Whether a client's event may ask for a response: one does whose type says so, or is not plain to see.
 * @param isBinary bytes without a type are sound then
 */
export function mayAskForResponse(event: Buffer, isBinary: boolean): boolean {
  const type = typeOfEvent(event);
  return type === responseCreate || type.includes('\\') || (type === '' && !isBinary);
}

/** The bytes of a server event in which its type stands, of which types are looked for with their quotes. */
export function typeBytes(event: Buffer): Buffer {
  return event.length > typeWithin ? event.subarray(0, typeWithin) : event;
}

const space = 0x20;
const comma = 0x2c;
const dot = 0x2e;
const backslash = 0x5c;
/** Of `A` to `Z`, what makes `a` to `z` of it. */
const lower = 0x20;
const errorWord = Buffer.from('error');
const failWord = Buffer.from('fail');

/** Members that say nothing of a model, of usage or of an error, and lead an upstream nowhere. */
const plainNames = [
  ...['type', 'event_id', 'audio', 'delta'],
  ...['response_id', 'item_id', 'output_index', 'content_index'],
].map((name) => Buffer.from(`"${name}"`));
/** By its first letter, the number of the one that begins with it, or none. */
const none = plainNames.length;
const nameBegins = new Uint8Array(256).fill(none);
for (const [number, name] of plainNames.entries()) nameBegins[name[1] as number] = number;

/**
 * Whether a client's event is plainly a piece of sound, or as short a word as that: JSON of one object whose members are
 * known to be harmless, and their values texts of plain signs, or numbers. Those are most of what a session sends, and
 * told at a fraction of what it costs to parse them. Of any other event this says nothing.
 */
export function isPlainEvent(event: Buffer): boolean {
  return plainTypeAt(event) !== -1 && isPlainAscii(event);
}

/**
 * Finds the type of an event that has nothing but members that are known to be harmless, each at most once, whatever is in
 * their texts: those are passed over by a search for where they end.
 * @returns the offset of its first letter, or -1: of an event that is not like that this says nothing
 */
function plainTypeAt(event: Buffer): number {
  const last = event.length - 1;
  if (event[0] !== openBrace || event[last] !== closeBrace) return -1;
  let seen = 0;
  let type = -1;
  for (let at = 1; ; at = behind(event, at)) {
    const name = nameAt(event, at);
    if (name === -1 || (seen & (1 << name)) !== 0) return -1;
    seen |= 1 << name;
    at += (plainNames[name] as Buffer).length;
    if (event[at] !== colon) return -1;
    at = behind(event, at);
    if (event[at] === quote) {
      if (name === 0) type = at + 1;
      const end = endOfString(event, at + 1);
      at = end === -1 ? -1 : end + 1;
    } else at = endOfNumber(event, at);
    if (at === -1) return -1;
    if (at === last) return type;
    if (event[at] !== comma) return -1;
  }
}

/** @returns which of the names stands at a place, or -1 */
function nameAt(event: Buffer, at: number): number {
  const name = nameBegins[event[at + 1] as number] as number;
  return name < none && standsAt(event, at, plainNames[name] as Buffer) ? name : -1;
}

/** @returns the place behind a colon or a comma, and the blank that may follow it */
function behind(event: Buffer, at: number): number {
  return event[at + 1] === space ? at + 2 : at + 1;
}

/**
 * Whether a server event is plainly one of the protocol's own that tells of neither an error nor usage, such as a piece of
 * sound or text: nearly all of them, told by their names and their type. Of any other event this says nothing.
 */
export function isPiece(event: Buffer): boolean {
  const type = plainTypeAt(event);
  return type !== -1 && type < typeWithin && !mayBeOfUsage(event, type) && isOwnType(event, type);
}

/** Whether a type is one of the protocol's own, all of which have a dot in them, and no error's. */
function isOwnType(event: Buffer, start: number): boolean {
  let hasDot = false;
  for (let at = start; event[at] !== quote; at++) {
    if (event[at] === backslash || at > start + typeWithin) return false;
    if (event[at] === dot) hasDot = true;
    else if (saysAt(event, at, errorWord) || saysAt(event, at, failWord)) return false;
  }
  return hasDot;
}

function saysAt(event: Buffer, at: number, word: Buffer): boolean {
  for (let i = 0; i < word.length; i++) if (((event[at + i] as number) | lower) !== word[i]) return false;
  return true;
}
