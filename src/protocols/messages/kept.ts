import { type Holder, readHolder } from '../../conversation/kept-turns.js';
import { parseJson } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import type { ThreadPart } from './thread.js';

/** One turn of a thread as it is kept under the id of its reply, in the client's own JSON. */
export interface KeptMessage extends ThreadPart {
  /** Bytes of this turn and of all before it. */
  readonly bytes: number;
  /** Ids of all replies before it in the thread, oldest first, each of which is kept for itself. */
  readonly before: readonly string[];
  /** JSON text of the reply as a message of a request. */
  readonly reply: string;
}

const own = '"messages"';
const names = new Set(['v', 'bytes', 'before', 'settings', 'messages', 'reply', 'held', 'of']);

/** What the client said in a turn, as members of its record. */
export function writePart({ settings, messages }: ThreadPart): string {
  return `"settings":${settings},"messages":[${messages}]`;
}

/**
 * The value of a turn's record: a JSON text whose first member is the version of its form.
 * @param part as `writePart` gives it
 */
export function writeKept(
  { bytes, before, reply }: Omit<KeptMessage, keyof ThreadPart>,
  part: string,
): string {
  return `{"v":1,"bytes":${bytes},"before":${JSON.stringify(before)},${part},"reply":${reply}}`;
}

/** @returns the turn or who holds it, or null for a value of another form */
export function readKept(value: string): KeptMessage | Holder | null {
  const taken = withoutMembers(Buffer.from(value), names)?.taken;
  if (taken?.get('v') !== '1' || (taken.get('of') ?? own) !== own) return null;
  const held = taken.get('held');
  if (held !== undefined) return readHolder(held);
  const [settings, messages, reply] = [taken.get('settings'), taken.get('messages'), taken.get('reply')];
  if (settings === undefined || messages === undefined || reply === undefined) return null;
  return {
    bytes: Number(taken.get('bytes')),
    before: parseJson(taken.get('before') ?? '[]') as string[],
    settings,
    messages: messages.slice(1, -1),
    reply,
  };
}
