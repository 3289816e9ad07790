import { BACKSLASH, COLON, DOT, LOWER_U, QUOTE, SLASH, ZERO } from '../wire/bytes.js';
import { type Needle, needleAt } from '../wire/json-skip.js';
import { ArgumentPlaces } from './argument-places.js';
import { carryingMark, carryingSeparator } from './carrying-id.js';
import { memberNameOf } from './media-string.js';
import { textShare, tokenHeadBytes, tokenMarks } from './signature.js';

/*
 * Tokens of `signature.ts` in a body that was not parsed. Clients send them with every later turn, encoded up to twice, and in two
 * ids for each call, while their upstream gets the content once, or not at all. They are no text of a prompt. What has not the
 * form of a token, or is in the arguments of a call, is: otherwise clients could disguise any text as tokens. Reasoning that no
 * vendor has signed is as much text as a chat upstream gets of it.
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
/** Maximum number of bytes of an id before its tokens. */
const longestBareId = 1024;
/** Number of marks in a body's texts after which no more are searched for. */
const mostVain = 64;

const [plainMark] = tokenMarks;
const marks: readonly Needle[] = [...tokenMarks, carryingMark];

/**
 * Returns a body without the tokens that it carries, but with as many of their bytes as are text: the same one if it has none.
 * It may no longer be what its client means.
 * @param mayReachChat the call may go to a chat upstream, which gets reasoning that no vendor has signed
 */
export function withoutCarried(body: Buffer, mayReachChat: boolean): Buffer {
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
    const end = start === -1 ? -1 : body.indexOf(QUOTE, start);
    const text = end === -1 ? -1 : textWithin(body, start, end, mayReachChat);
    if (text === -1) {
      vain++;
      behind = at + mark.whole.length;
    } else {
      kept.push(body.subarray(from, start + text));
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

/*
 * What a byte adds to the counts of its block: capitals, small letters, digits, and other bytes of base64 in either alphabet,
 * eight bits for each. Other bytes are not of a token, or not alone.
 */
const weights = new Int32Array(256);
const kinds = ['ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz', '0123456789', '+/=_-'];
for (const [kind, bytes] of kinds.entries())
  for (const byte of Buffer.from(bytes)) weights[byte] = 1 << (8 * kind);
/** Bytes that are counted together. An escape may exceed a block. */
const blockBytes = 128;
/** Maximum number of dots and colons in a token: between its parts, and in a signature of some vendors. */
const mostDots = 8;

/**
 * Returns how many bytes of a string are text although it has the form of tokens; -1 if it has not. Every byte is read:
 * where a client could guess what is not, it could put a text there.
 */
function textWithin(body: Buffer, start: number, end: number, mayReachChat: boolean): number {
  const share = textShare(body.toString('latin1', start, start + tokenHeadBytes));
  if (share === null) return -1;
  let text = 0;
  let encoded = 0;
  let dots = 0;
  for (let at = start; at < end; ) {
    const from = at;
    const to = Math.min(end, from + blockBytes);
    let counts = countsOf(body, from, to);
    if (bytesIn(counts) === to - from) at = to;
    else {
      counts = 0;
      for (; at < to; at++) {
        const byte = body[at] as number;
        const weight = weights[byte] as number;
        const length = byte === BACKSLASH ? lengthOfEscape(body, at) : 0;
        if (length > 0) at += length - 1;
        else if (weight === 0 && ((byte !== DOT && byte !== COLON) || ++dots > mostDots)) return -1;
        counts += weight;
      }
    }
    if (isEncoded(counts)) encoded += at - from;
    else text += at - from;
  }
  return mayReachChat ? text + Math.ceil(share * encoded) : text;
}

/** Four bytes per iteration and a sum of small integers take a third of the time of one byte and a branch. */
function countsOf(body: Buffer, from: number, to: number): number {
  let counts = 0;
  let at = from;
  for (; at + 3 < to; at += 4) {
    const half = (weights[body[at] as number] as number) + (weights[body[at + 1] as number] as number);
    const rest = (weights[body[at + 2] as number] as number) + (weights[body[at + 3] as number] as number);
    counts = (counts + half + rest) | 0;
  }
  for (; at < to; at++) counts = (counts + (weights[body[at] as number] as number)) | 0;
  return counts;
}

function bytesIn(counts: number): number {
  return (counts & 0xff) + ((counts >> 8) & 0xff) + ((counts >> 16) & 0xff) + (counts >>> 24);
}

/**
 * Whether letters are of what was encoded: most of them of no one kind. So are those of words that are spaces or rules for
 * long; what else repeats a byte counts as text, and no more than that.
 */
function isEncoded(counts: number): boolean {
  const capitals = counts & 0xff;
  const small = (counts >> 8) & 0xff;
  const digits = (counts >> 16) & 0xff;
  return 8 * Math.max(capitals, small, digits) < 7 * (capitals + small + digits);
}

/** Returns the length of an escape of `+`, `/` or `=`, which some encoders of JSON write as `\u002B` or `\/`; 0 for others. */
function lengthOfEscape(body: Buffer, at: number): number {
  if (body[at + 1] === SLASH) return 2;
  if (body[at + 1] !== LOWER_U || body[at + 2] !== ZERO || body[at + 3] !== ZERO) return 0;
  // In lower case, as `2b`, `2f` and `3d` are.
  const digits = ((body[at + 4] as number) << 8) | (body[at + 5] as number) | 0x20;
  return digits === 0x3262 || digits === 0x3266 || digits === 0x3364 ? 6 : 0;
}
