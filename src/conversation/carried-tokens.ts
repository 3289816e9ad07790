import { QUOTE } from '../wire/bytes.js';
import { type Needle, needleAt } from '../wire/json-skip.js';
import { carryingMark } from './carrying-id.js';
import { memberNameOf } from './media-string.js';
import { tokenMarks } from './signature.js';

/*
 * Tokens of `signature.ts` in a body that was not parsed. Clients send them with every later turn, encoded up to twice, and in two
 * ids for each call, while their upstream gets the content once, or not at all. They are no text of a prompt.
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
  const kept: Buffer[] = [];
  let from = 0;
  let behind = 0;
  for (let vain = 0; vain < mostVain; ) {
    const first = nextOf(next);
    const at = next[first] as number | undefined;
    if (at === undefined) break;
    const mark = marks[first] as Needle;
    const start = carriedFrom(body, at, behind, mark);
    const end = start === -1 ? -1 : body.indexOf(QUOTE, at + mark.whole.length);
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

/** Returns where the tokens begin whose mark is at an offset; -1 if it is in a text. @param behind what precedes is not of its string */
function carriedFrom(body: Buffer, at: number, behind: number, mark: Needle): number {
  const isInId = mark === carryingMark;
  const least = Math.max(behind, at - longestBareId);
  const before = isInId ? body.subarray(least, at).lastIndexOf(QUOTE) : 0;
  if (before === -1) return -1;
  const name = memberNameOf(body, isInId ? least + before : at);
  if (name === null) return -1;
  const isCarried = carryingMembers.has(name) || (name === dataMember && mark === plainMark);
  if (!isCarried) return -1;
  return isInId ? at : at + 1;
}
