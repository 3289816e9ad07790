import { mayBeOfUsage, typeWithin } from './event-type.js';
import { plainTypeAt } from './plain-event.js';

const quote = 0x22;
const dot = 0x2e;
const backslash = 0x5c;
/** Of `A` to `Z`, what makes `a` to `z` of it. */
const lower = 0x20;
const errorWord = Buffer.from('error');
const failWord = Buffer.from('fail');

/** The type that was found harmless last, with the quote behind it: most events are of the same few. */
const harmless = new Uint8Array(typeWithin + 2);
let harmlessBytes = 0;

/**
 * Whether a server event is plainly one of the protocol's own that tells of neither an error nor usage, such as a piece of
 * sound or text: nearly all of them, told by their names and their type. Of any other event this says nothing.
 */
export function isPiece(event: Buffer): boolean {
  const type = plainTypeAt(event);
  if (type === -1 || type >= typeWithin) return false;
  if (isLastHarmless(event, type)) return true;
  if (mayBeOfUsage(event, type) || !isOwnType(event, type)) return false;
  keepHarmless(event, type);
  return true;
}

function isLastHarmless(event: Buffer, type: number): boolean {
  let same = 0;
  while (same < harmlessBytes && event[type + same] === harmless[same]) same++;
  return same > 0 && same === harmlessBytes;
}

function keepHarmless(event: Buffer, type: number): void {
  let length = 0;
  do harmless[length] = event[type + length] as number;
  while (event[type + length++] !== quote);
  harmlessBytes = length;
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
