import { type Holder, readHolder } from '../../conversation/kept-turns.js';
import { parseJson } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';

/** One turn of a thread as it is kept under the id of its reply, in the client's own JSON. */
export interface KeptMessage {
  /** When it was made (Unix milliseconds). */
  readonly at: number;
  /** The model's name as the client used it. */
  readonly model: string;
  /** Bytes of this turn and of all before it. */
  readonly bytes: number;
  /** Ids of all replies before it in the thread, oldest first, each of which is kept for itself. */
  readonly before: readonly string[];
  /** JSON text of an object with what the turn said of the thread's system text and tools. */
  readonly settings: string;
  /** JSON texts of the messages that it was asked with, with commas between them. */
  readonly messages: string;
  /** JSON text of the reply as a message of a request. */
  readonly reply: string;
}

const own = '"messages"';
const names = new Set(['v', 'at', 'model', 'bytes', 'before', 'settings', 'messages', 'reply', 'held', 'of']);

/** The value of a turn's record: a JSON text whose first member is the version of its form. */
export function writeKept({ at, model, bytes, before, settings, messages, reply }: KeptMessage): string {
  return (
    `{"v":1,"at":${at},"model":${JSON.stringify(model)},"bytes":${bytes},"before":${JSON.stringify(before)},` +
    `"settings":${settings},"messages":[${messages}],"reply":${reply}}`
  );
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
    at: Number(taken.get('at')),
    model: parseJson(taken.get('model') ?? '""') as string,
    bytes: Number(taken.get('bytes')),
    before: parseJson(taken.get('before') ?? '[]') as string[],
    settings,
    messages: messages.slice(1, -1),
    reply,
  };
}

export function isHolder(kept: KeptMessage | Holder): kept is Holder {
  return 'upstream' in kept;
}
