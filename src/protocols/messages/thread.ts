/**
 * Message threads: the client sends what is new of a conversation alone, and names the reply that it goes on from. It is
 * told by the member `thread` and not by the beta's header, whose name changes with its versions.
 */

import { GatewayError } from '../../errors.js';
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

export const noSettings = '{}';

/** The SDK leaves them out of a request that goes on, since the vendor keeps them with the thread. */
const settingNames = ['system', 'tools'] as const;
const ofSettings: ReadonlySet<string> = new Set(settingNames);
const threadAlone: ReadonlySet<string> = new Set(['thread']);
const ofTheThread: ReadonlySet<string> = new Set(['thread', 'messages', ...settingNames]);

/**
 * Reads what a body says of a thread.
 * @param body that has passed the check of what is passed on
 * @returns null for one that is of no thread, or of none that is known here
 */
export function readThread(body: Buffer): ThreadRequest | null {
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
      const settings = whole.settings === noSettings ? '' : `${whole.settings.slice(1, -1)},`;
      const first = `{"thread":{"type":"create"},${settings}"messages":[${whole.messages}]`;
      return Buffer.concat([Buffer.from(rest.length === 0 ? first : `${first},`), ...rest, close]);
    },
  };
}

/**
 * A body for an upstream that would take no notice of its thread, and answer for a part of the conversation.
 * @param body that has passed the check of what is passed on
 * @returns the body without the member; null where it says nothing of a thread
 * @throws {GatewayError} `thread_unsupported_request` for one that goes on from a reply, and for a type that is not known
 */
export function withoutThread(body: Buffer): Buffer | null {
  const found = withoutMembers(body, threadAlone);
  const written = found?.taken.get('thread') ?? 'null';
  if (found === null || written === 'null') return null;
  if (previousIdOf(written) !== null)
    throw new GatewayError('thread_unsupported_request', undefined, { param: 'thread' });
  return Buffer.concat([open, ...found.rest, close]);
}

/**
 * Parts of a thread together, the earliest first: settings of a later one count. Each is read once, since what a thread
 * holds is for its client to say.
 */
export function joinParts(parts: readonly ThreadPart[]): ThreadPart {
  const settings = new Map<string, string>();
  const messages: string[] = [];
  for (const part of parts) {
    if (part.settings !== noSettings)
      for (const [name, value] of withoutMembers(Buffer.from(part.settings), ofSettings)?.taken ?? [])
        settings.set(name, value);
    if (part.messages !== '') messages.push(part.messages);
  }
  return { settings: settingsOf(settings), messages: messages.join() };
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

const open = Buffer.from('{');
const close = Buffer.from('}');
