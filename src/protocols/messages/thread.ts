/**
 * Message threads: the client sends what is new of a conversation alone, and names the reply that it goes on from. It is
 * told by the member `thread` and not by the beta's header, whose name changes with its versions.
 */

import { parseObject } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';

/** What the turns of a thread say: of its settings, and to each other. */
export interface ThreadPart {
  /** JSON text of an object with what a thread is begun with, as far as it is said here. */
  readonly settings: string;
  /** JSON texts of messages, with commas between them. */
  readonly messages: string;
}

/** A request of a thread, and what it says by itself. */
export interface ThreadRequest extends ThreadPart {
  /** Id of the reply that it goes on from; null where it begins a thread. */
  readonly previousId: string | null;
  /**
   * The body of the request for the same with the whole conversation. It begins a thread: an upstream that keeps threads
   * of its own may make one of it.
   */
  wholeBody(whole: ThreadPart): Buffer;
}

export const emptyThread: ThreadPart = { settings: '{}', messages: '' };

const member = Buffer.from('"thread"');
/** The SDK leaves them out of a request that goes on, since the vendor keeps them with the thread. */
const settingNames = ['system', 'tools'] as const;
const ofSettings: ReadonlySet<string> = new Set(settingNames);
const ofTheThread: ReadonlySet<string> = new Set(['thread', 'messages', ...settingNames]);

/**
 * Reads what a body says of a thread.
 * @param body that has passed the check of what is passed on
 * @returns null for one that is of no thread, or of none that is known here
 */
export function readThread(body: Buffer): ThreadRequest | null {
  // Nearly all bodies are of none, and are not looked through for it.
  if (!body.includes(member)) return null;
  const found = withoutMembers(body, ofTheThread);
  const written = found?.taken.get('thread') ?? 'null';
  if (found === null || written === 'null') return null;
  const { rest, taken } = found;
  const messages = taken.get('messages') ?? '[]';
  const previousId = previousIdOf(written);
  if (previousId === undefined || !messages.startsWith('[')) return null;
  return {
    previousId,
    settings: settingsOf(taken),
    messages: messages.slice(1, -1).trim(),
    wholeBody: (whole) => {
      const settings = whole.settings === '{}' ? '' : `${whole.settings.slice(1, -1)},`;
      const first = `{"thread":{"type":"create"},${settings}"messages":[${whole.messages}]`;
      return Buffer.concat([Buffer.from(rest.length === 0 ? first : `${first},`), ...rest, close]);
    },
  };
}

/** Two parts of a thread together: settings of the later one count. */
export function joinParts(before: ThreadPart, after: ThreadPart): ThreadPart {
  const settings =
    after.settings === '{}'
      ? before.settings
      : settingsOf(new Map([...settingMembers(before.settings), ...settingMembers(after.settings)]));
  return { settings, messages: joinMessages(before.messages, after.messages) };
}

export function joinMessages(before: string, after: string): string {
  return before === '' || after === '' ? before + after : `${before},${after}`;
}

function settingMembers(settings: string): ReadonlyMap<string, string> {
  return withoutMembers(Buffer.from(settings), ofSettings)?.taken ?? new Map();
}

function settingsOf(members: ReadonlyMap<string, string>): string {
  const given = settingNames.flatMap((name) => {
    const value = members.get(name) ?? 'null';
    return value === 'null' ? [] : [`"${name}":${value}`];
  });
  return `{${given.join(',')}}`;
}

/** @returns undefined for what is no thread, or one of a type that is not known here */
function previousIdOf(written: string): string | null | undefined {
  const { type, previous_message_id: id } = parseObject(written) ?? {};
  if (type === 'create') return null;
  return type === 'continue' && typeof id === 'string' ? id : undefined;
}

const close = Buffer.from('}');
