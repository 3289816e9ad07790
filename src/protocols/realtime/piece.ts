import { mayBeOfUsage, typeWithin } from './event-type.js';
import { plainTypeAt } from './plain-event.js';

const quote = 0x22;
const dot = 0x2e;
const backslash = 0x5c;
/** Of `A` to `Z`, what makes `a` to `z` of it. */
const lower = 0x20;
const errorWord = Buffer.from('error');
const failWord = Buffer.from('fail');

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
