import { parseObject } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';

/** One turn of a thread as it is kept under the id of its reply, in the client's own JSON. */
export interface KeptMessage {
  /** The model's name as the client used it. */
  readonly model: string;
  /** Ids of all replies before it in the thread, oldest first, each of which is kept for itself. */
  readonly before: readonly string[];
  /** JSON text of an object with what the turn said of the thread's system text and tools. */
  readonly settings: string;
  /** JSON texts of the messages that it was asked with, with commas between them. */
  readonly messages: string;
  /** JSON text of the reply as a message of a request. */
  readonly reply: string;
}

/** Of the form of a record: one of another form is taken for none. */
const version = '1';
const members: ReadonlySet<string> = new Set(['v', 'model', 'before', 'settings', 'messages', 'reply']);

/** The text under which a turn is kept. */
export function writeKeptMessage({ model, before, settings, messages, reply }: KeptMessage): string {
  return (
    `{"v":${version},"model":${JSON.stringify(model)},"before":${JSON.stringify(before)},` +
    `"settings":${settings},"messages":[${messages}],"reply":${reply}}`
  );
}

/** @returns null for a record of something else */
export function readKeptMessage(text: string): KeptMessage | null {
  const taken = withoutMembers(Buffer.from(text), members)?.taken;
  if (taken?.get('v') !== version) return null;
  const before = parseObject(`{"ids":${taken.get('before')}}`)?.ids;
  const model = parseObject(`{"name":${taken.get('model')}}`)?.name;
  const [settings, messages, reply] = [taken.get('settings'), taken.get('messages'), taken.get('reply')];
  if (typeof model !== 'string' || !isTexts(before)) return null;
  if (settings === undefined || messages === undefined || reply === undefined) return null;
  return { model, before, settings, messages: messages.slice(1, -1), reply };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/**
 * The reply of a whole answer as a message of the next request; null for one that nobody goes on from: after a refusal
 * the SDK drops the turn.
 * @param answer JSON text of a `message`
 */
export function replyOf(answer: string): { readonly id: string; readonly reply: string } | null {
  const taken = withoutMembers(Buffer.from(answer), new Set(['id', 'content', 'stop_reason']))?.taken;
  const content = taken?.get('content');
  const id = parseObject(`{"id":${taken?.get('id')}}`)?.id;
  if (content === undefined || typeof id !== 'string' || taken?.get('stop_reason') === '"refusal"')
    return null;
  return { id, reply: `{"role":"assistant","content":${content}}` };
}
