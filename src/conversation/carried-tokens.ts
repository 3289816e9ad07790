import { BACKSLASH, DOT, QUOTE, SLASH } from '../wire/bytes.js';
import { type Needle, needleAt } from '../wire/json-skip.js';
import { ArgumentPlaces } from './argument-places.js';
import { carryingMark, carryingSeparator } from './carrying-id.js';
import { memberNameOf } from './media-string.js';
import { isSignedHead, tokenHeadBytes, tokenMarks } from './signature.js';

/*
 * Tokens of `signature.ts` in a body that was not parsed. Clients send them with every later turn, encoded up to twice, and in two
 * ids for each call, while their upstream gets the content once, or not at all. They are no text of a prompt. What has not the
 * form of a token, or is in the arguments of a call, is: otherwise clients could disguise any text as tokens. So is reasoning that
 * no vendor has signed, which its upstream gets as text.
 */

/** Members that tokens are carried in. In another member, what looks like a token is a text. */
const carryingMembers = new Set([
  'id',
  'call_id',
  'tool_call_id',
  'tool_use_id',
  'signature',
  'thoughtSignature',
  'thought_signature',
  'encrypted_content',
]);
/** The member of a `redacted_thinking`, which can also be a file in base64: then a token is not as it is. */
const dataMember = 'data';
/** Smaller bodies have no tokens worth a search. */
const leastWithTokens = 4 * 1024;
/** Maximum number of bytes of an id before its tokens. */
const longestBareId = 1024;
/** Number of marks in a body's texts after which no more are searched for. */
const mostVain = 64;

const [plainMark] = tokenMarks;
const marks: readonly Needle[] = [...tokenMarks, carryingMark];

/** Returns a body without the tokens that it carries: the same one if it has none. It may no longer be what its client means. */
export function withoutCarried(body: Buffer): Buffer {
  if (body.length < leastWithTokens) return body;
  const next = marks.map((mark) => needleAt(body, mark, 0));
  const places = new ArgumentPlaces(body);
  const kept: Buffer[] = [];
  let from = 0;
  let behind = 0;
  for (let vain = 0; vain < mostVain; ) {
    const first = nextOf(next);
    const at = next[first] as number | undefined;
    if (at === undefined) break;
    const mark = marks[first] as Needle;
    const start = carriedFrom(body, { needle: mark, at, behind }, places);
    const end = start === -1 ? -1 : endOfTokens(body, start);
    if (end === -1) {
      vain++;
      behind = at + mark.whole.length;
    } else {
      kept.push(body.subarray(from, start));
      from = end;
      behind = end;
    }
    for (let i = 0; i < marks.length; i++)
      if (next[i] !== -1 && (next[i] as number) < behind)
        next[i] = needleAt(body, marks[i] as Needle, behind);
  }
  return from === 0 ? body : Buffer.concat([...kept, body.subarray(from)]);
}

/** Returns which of several offsets is the smallest, or -1 if none is one. */
function nextOf(offsets: readonly number[]): number {
  let first = -1;
  for (let i = 0; i < offsets.length; i++)
    if (offsets[i] !== -1 && (first === -1 || (offsets[i] as number) < (offsets[first] as number))) first = i;
  return first;
}

interface Mark {
  readonly needle: Needle;
  readonly at: number;
  /** What precedes this is not of its string. */
  readonly behind: number;
}

/** Returns where the tokens with a mark begin, without their quote; -1 if it is in a text. */
function carriedFrom(body: Buffer, { needle, at, behind }: Mark, places: ArgumentPlaces): number {
  const isInId = needle === carryingMark;
  const least = Math.max(behind, at - longestBareId);
  const before = isInId ? body.subarray(least, at).lastIndexOf(QUOTE) : 0;
  if (before === -1) return -1;
  const quote = isInId ? least + before : at;
  const name = memberNameOf(body, quote);
  if (name === null) return -1;
  const isCarried = carryingMembers.has(name) || (name === dataMember && needle === plainMark);
  if (!isCarried || places.hold(quote)) return -1;
  return isInId ? at + carryingSeparator.length : at + 1;
}

/** Bytes of base64 in either alphabet. */
const letters = new Uint8Array(256);
for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-')
  letters[letter.charCodeAt(0)] = 1;
/** Maximum number of dots in a token: between its parts, and in a signature of some vendors. */
const mostDots = 8;
/** Number of samples of a token, and the letters of each. */
const samples = 4;
const sampleLetters = 128;

/** Returns where the tokens of a string end, at its quote; -1 if they are none. */
function endOfTokens(body: Buffer, start: number): number {
  const head = body.toString('latin1', start, start + tokenHeadBytes);
  if (!isSignedHead(head.replaceAll('\\/', '/'))) return -1;
  let dots = 0;
  let at = start;
  for (; body[at] !== QUOTE; at++) {
    const byte = body[at] as number;
    if (letters[byte] === 1 || (byte === BACKSLASH && body[at + 1] === SLASH)) continue;
    if (byte !== DOT || ++dots > mostDots) return -1;
  }
  return isEncoded(body, start, at) ? at : -1;
}

/**
 * Whether letters are of what was encoded: of all kinds. The samples are random: otherwise a text could have the right letters
 * in their places.
 */
function isEncoded(body: Buffer, start: number, end: number): boolean {
  const places = end - start - sampleLetters;
  for (let i = 0; i < samples && places > 0; i++) {
    const from = start + Math.floor(Math.random() * places);
    const sample = body.toString('latin1', from, from + sampleLetters);
    if (!/[A-Z]/.test(sample) || !/[a-z]/.test(sample) || !/[0-9]/.test(sample)) return false;
  }
  return true;
}
