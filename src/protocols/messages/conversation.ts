import {
  type ConversationRules,
  type HeldTurn,
  type Holder,
  isHolder,
  isLegalId,
  type Keep,
  type KeepRequest,
  type KeptTurn,
  type Recall,
  type Recalled,
  readRecord,
  shownId,
  turnAfter,
  turnsBefore,
  writeHolder,
} from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import { parseJson } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { StreamedMessage } from './streamed-message.js';
import {
  joinParts,
  noSettings,
  readThread,
  type ThreadPart,
  type ThreadRequest,
  withoutThread,
} from './thread.js';

/** One turn of a thread as it is kept under the id of its reply, in the client's own JSON. */
interface KeptMessage extends ThreadPart {
  /** Bytes of this turn and of all before it. */
  readonly bytes: number;
  /** Ids of all replies before it in the thread, oldest first, each of which is kept for itself. */
  readonly before: readonly string[];
  /** JSON text of the reply as a message of a request. */
  readonly reply: string;
}

/** What the client said in a turn, as members of its record. */
function writePart({ settings, messages }: ThreadPart): string {
  return `"settings":${settings},"messages":[${messages}]`;
}

/**
 * The value of a turn's record: a JSON text whose first member is the version of its form.
 * @param part as `writePart` gives it
 */
function writeKept({ bytes, before, reply }: Omit<KeptMessage, keyof ThreadPart>, part: string): string {
  return `{"v":1,"bytes":${bytes},"before":${JSON.stringify(before)},${part},"reply":${reply}}`;
}

/** @returns the turn or who holds it, or null for a value of another form */
export function readKept(value: string): KeptMessage | Holder | null {
  const taken = readRecord(value, 'messages', ['bytes', 'before', 'settings', 'messages', 'reply']);
  if (taken === null || isHolder(taken)) return taken;
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

/** A longer streamed reply is not kept. */
const mostCharacters = 8 * 1024 * 1024;

/** How messages go on from earlier ones: by the member `thread`. */
export const messagesConversation: ConversationRules = {
  mention: null,
  isAsked: true,
  isShown: false,
  recall,
  keep,
  hold,
  withoutTurns: withoutThread,
};

/** The same for questions for the number of tokens, which nobody goes on from. */
export const countTokensConversation: ConversationRules = {
  ...messagesConversation,
  keep: () => null,
  hold: () => null,
};

function recall(body: Buffer): Recall | null {
  const thread = readThread(body);
  const previousId = thread?.previousId ?? null;
  if (thread === null || previousId === null) return null;
  return {
    ids: isLegalId(previousId) ? [previousId] : [],
    before: (found) => turnsBefore(recordOf(found[0] ?? null)),
    join: (found, before, recordBytes) => join(thread, previousId, { found, before, recordBytes }),
  };
}

function recordOf(value: string | null): KeptMessage | Holder | null {
  return value === null ? null : readKept(value);
}

interface FoundRecords {
  readonly found: readonly (string | null)[];
  readonly before: readonly (string | null)[];
  readonly recordBytes: number;
}

function join(thread: ThreadRequest, previousId: string, records: FoundRecords): Recalled {
  const previous = recordOf(records.found[0] ?? null);
  const nothing = { body: null, turn: null, echo: null, input: null };
  if (previous !== null && isHolder(previous))
    return { ...nothing, holder: previous, unfound: threadNotFound(previousId) };
  const history = previous === null ? null : historyOf(previous, records.before);
  if (previous === null || history === null)
    return { ...nothing, holder: null, unfound: threadNotFound(previousId) };
  const whole = joinParts([...history, thread]);
  const said = { before: [...previous.before, previousId], bytesBefore: previous.bytes };
  const turn = turnAfter(said, { own: writePart(thread), all: () => writePart(whole) }, records.recordBytes);
  return { ...nothing, body: thread.wholeBody(whole), holder: null, unfound: null, turn };
}

/** @returns all that was said up to a reply; null when a part of it is gone */
function historyOf(previous: KeptMessage, before: readonly (string | null)[]): readonly ThreadPart[] | null {
  if (before.length < previous.before.length) return null;
  const parts: ThreadPart[] = [];
  for (const value of before) {
    const kept = recordOf(value);
    if (kept === null || isHolder(kept)) return null;
    parts.push(...partsOf(kept));
  }
  parts.push(...partsOf(previous));
  return parts;
}

/** A reply that says nothing is left out: the vendor refuses a message without content, and no call hangs on it. */
function partsOf({ settings, messages, reply }: KeptMessage): readonly ThreadPart[] {
  const said = { settings, messages: messages.trim() };
  return reply === messageOf('[]') ? [said] : [said, { settings: noSettings, messages: reply }];
}

function threadNotFound(id: string): GatewayError {
  return new GatewayError('thread_not_found', `No thread is known here that has the message${shownId(id)}.`, {
    param: 'thread.previous_message_id',
  });
}

function keep({ body, recalled, newId, recordBytes, isPassed = false }: KeepRequest): Keep | null {
  const turn = recalled === null ? firstTurn(body) : recalled.turn;
  if (turn === null || Buffer.byteLength(turn.own) > recordBytes) return null;
  const streamed = new StreamedMessage(mostCharacters);
  const id = newId();
  return {
    id,
    // The client that goes on from a reply which was not kept is told so, and sends everything.
    isAsked: false,
    bytes: turn.own.length + (turn.all?.length ?? 0),
    echo: null,
    needed: turn.needed,
    see: (run) => streamed.see(run),
    gathered: () => streamed.held,
    records(end, isStream) {
      if (isStream && !isPassed) streamed.see(end);
      const reply = isStream ? replyOfStream(streamed) : replyOf(end);
      if (reply === null) return [];
      const given = isPassed ? (isStream ? streamed.id : idOf(end)) : `msg_${id}`;
      if (given === null || !isLegalId(given)) return [];
      return [{ id: given, value: recordText(turn, reply) }];
    },
    unkept: (end) => end,
  };
}

function firstTurn(body: Buffer): KeptTurn | null {
  const thread = readThread(body);
  if (thread === null || thread.previousId !== null) return null;
  return { before: [], bytesBefore: 0, own: writePart(thread), all: null, needed: [] };
}

function recordText({ before, bytesBefore, own, all }: KeptTurn, reply: string): string {
  const part = all ?? own;
  const bytes = (all === null ? bytesBefore : 0) + part.length + reply.length;
  return writeKept({ bytes, before: all === null ? before : [], reply }, part);
}

const ofReply = new Set(['content', 'stop_reason']);

/**
 * @returns null for an answer that nobody goes on from: after a refusal the SDK drops the turn, and a compaction, which takes
 * the place of what is kept, is sent back to begin a thread of its own
 */
function replyOf(answer: Buffer): string | null {
  const taken = withoutMembers(answer, ofReply)?.taken;
  const content = taken?.get('content');
  const reason = taken?.get('stop_reason');
  return content === undefined || reason === '"refusal"' || reason === '"compaction"'
    ? null
    : messageOf(content);
}

function replyOfStream({ content, stopReason }: StreamedMessage): string | null {
  const isLast = stopReason === 'refusal' || stopReason === 'compaction';
  return content === null || isLast ? null : messageOf(content);
}

function messageOf(content: string): string {
  return `{"role":"assistant","content":${content}}`;
}

const lastEvent = Buffer.from('message_stop');

/** The upstream has the thread under the id of its reply, which the first event of a stream tells. */
function hold(body: Buffer, holder: Holder, isOnly: boolean): HeldTurn | null {
  // A thread is not shown by its id.
  if (isOnly || readThread(body) === null) return null;
  return { keep: holderKeep(writeHolder(holder, 'messages')), watch: null };
}

function holderKeep(value: string): Keep {
  const streamed = new StreamedMessage(0);
  return {
    id: null,
    isAsked: false,
    bytes: 0,
    echo: null,
    needed: [],
    see: (run) => {
      if (streamed.id === null) streamed.see(run);
    },
    records(end, isStream) {
      if (isStream && end.includes(lastEvent)) streamed.see(end);
      if (isStream && !streamed.isWhole) return [];
      const id = isStream ? streamed.id : idOf(end);
      return id !== null && isLegalId(id) ? [{ id, value }] : [];
    },
    unkept: (end) => end,
  };
}

const ofId = new Set(['id']);

function idOf(answer: Buffer): string | null {
  const id = parseJson(withoutMembers(answer, ofId)?.taken.get('id') ?? 'null');
  return typeof id === 'string' ? id : null;
}
