import { endOfNumber, endOfString } from '../../wire/json-skip.js';
import { isPlainAscii } from '../../wire/plain-text.js';
import { standsAt } from '../../wire/stands-at.js';
import { mayBeOfUsage, typeWithin } from './event-type.js';

const quote = 0x22;
const space = 0x20;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
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
export function plainTypeAt(event: Buffer): number {
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
