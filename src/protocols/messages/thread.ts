/**
 * Message threads: the client sends what is new of a conversation alone, and names the reply that it goes on from. It is
 * told by the member `thread` and not by the beta's header, whose name changes with its versions.
 */

import { parseObject } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import type { KeptMessage } from './kept.js';

/** A request of a thread. */
export interface ThreadRequest {
  /** Id of the reply that it goes on from; null where it begins a thread. */
  readonly previousId: string | null;
  /** JSON text of an object with what a thread is begun with, as far as the request has it. */
  readonly settings: string;
  /** JSON texts of its own messages, with commas between them. */
  readonly messages: string;
  /**
   * The body of the request for the same with the whole conversation. It begins a thread: an upstream that keeps threads
   * of its own may make one of it.
   */
  wholeBody(history: ThreadHistory): Buffer;
}

/** What went before in a thread. */
export interface ThreadHistory {
  readonly settings: string;
  /** JSON texts, with commas between them. */
  readonly messages: string;
}

/** The SDK leaves them out of a request that goes on, since the vendor keeps them with the thread. */
const settingNames = ['system', 'tools'] as const;
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
  const own = listItems(messages);
  const settings = settingsOf(taken);
  return {
    previousId,
    settings: objectOf(settings),
    messages: own,
    wholeBody: (history) => {
      const kept = withoutMembers(Buffer.from(history.settings), new Set(settingNames));
      const all = new Map([...(kept?.taken ?? []), ...settings]);
      const members = [
        '"thread":{"type":"create"}',
        ...membersOf(all),
        `"messages":[${joined(history.messages, own)}]`,
      ];
      const first = `{${members.join(',')}`;
      return Buffer.concat([Buffer.from(rest.length === 0 ? first : `${first},`), ...rest, close]);
    },
  };
}

/** The history that the records of a thread's earlier replies hold. @param records oldest first */
export function historyOf(records: readonly KeptMessage[]): ThreadHistory {
  const settings = new Map<string, string>();
  let messages = '';
  for (const record of records) {
    messages = joined(joined(messages, record.messages), record.reply);
    const own = withoutMembers(Buffer.from(record.settings), new Set(settingNames));
    for (const [name, value] of own?.taken ?? []) settings.set(name, value);
  }
  return { settings: objectOf(settings), messages };
}

function settingsOf(taken: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const name of settingNames) {
    const value = taken.get(name);
    if (value !== undefined && value !== 'null') found.set(name, value);
  }
  return found;
}

function membersOf(settings: ReadonlyMap<string, string>): string[] {
  return [...settings].map(([name, value]) => `"${name}":${value}`);
}

function objectOf(settings: ReadonlyMap<string, string>): string {
  return `{${membersOf(settings).join(',')}}`;
}

/** @returns undefined for what is no thread, or one of a type that is not known here */
function previousIdOf(written: string): string | null | undefined {
  const { type, previous_message_id: id } = parseObject(written) ?? {};
  if (type === 'create') return null;
  return type === 'continue' && typeof id === 'string' ? id : undefined;
}

function listItems(list: string): string {
  return list.slice(1, -1).trim();
}

function joined(before: string, after: string): string {
  return before === '' || after === '' ? before + after : `${before},${after}`;
}

const close = Buffer.from('}');
