import { watchFor } from '../../conversation/answer-id.js';
import {
  type ConversationRules,
  type HeldTurn,
  type Holder,
  isHolder,
  isLegalId,
  type Keep,
  type KeepRequest,
  type KeptChain,
  type KeptRecord,
  type KeptTurn,
  namedId,
  plainKeep,
  type Recall,
  type Recalled,
  readRecord,
  shownId,
  turnAfter,
  turnAlone,
  turnsBefore,
  turnsIn,
  writeHolder,
  writeTurn,
} from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import {
  isObject,
  isObjectText,
  type JsonObject,
  parseJson,
  parseObject,
  textOf,
  textOrNull,
} from '../../wire/json.js';
import {
  endOfValue,
  lastMemberAt,
  mostDepth,
  needleAt,
  needleOf,
  objectAfterKey,
  withMembers,
  withoutMembers,
} from '../../wire/json-skip.js';
import { memberError } from '../../wire/reading.js';
import { eventEnd, eventObject } from '../../wire/sse.js';

/**
 * Message threads: the client sends what is new of a conversation alone, and names the reply that it goes on from. It is
 * told by the member `thread` and not by the beta's header, whose name changes with its versions.
 */

/** What the turns of a thread say: of its settings, and to each other. */
interface ThreadPart {
  /** JSON text of an object with what a thread is begun with, as far as it is said here. */
  readonly settings: string;
  /** JSON texts of messages, with commas between them. */
  readonly messages: string;
}

/** A request of a thread, and what it says by itself. */
interface ThreadRequest extends ThreadPart {
  /** Id of the reply that it goes on from; null where it begins a thread. */
  readonly previousId: string | null;
  /**
   * The body of the request for the same with the whole conversation. It begins a thread: an upstream that keeps threads
   * of its own may make one of it.
   */
  wholeBody(whole: ThreadPart): Buffer;
}

const noSettings = '{}';

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
      return withMembers(`"thread":{"type":"create"},${settings}"messages":[${whole.messages}]`, rest);
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
  return withMembers('', found.rest);
}

/**
 * Parts of a thread together, the earliest first: settings of a later one count. Each is read once, since what a thread
 * holds is for its client to say.
 */
function joinParts(parts: readonly ThreadPart[]): ThreadPart {
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

/** One turn of a thread as it is kept under the id of its reply, in the client's own JSON. */
interface KeptMessage extends ThreadPart, KeptChain {
  /** JSON text of the reply as a message of a request. */
  readonly reply: string;
}

/** What the client said in a turn, as members of its record. */
function writePart({ settings, messages }: ThreadPart): string {
  return `"settings":${settings},"messages":[${messages}]`;
}

/** @returns the turn or who holds it, or null for a value of another form */
export function readKept(value: string): KeptMessage | Holder | null {
  const kept = readRecord(value, 'messages', ['settings', 'messages', 'reply']);
  if (kept === null || isHolder(kept)) return kept;
  const [settings = '', messages = '', reply = ''] = kept.texts;
  return { bytes: kept.bytes, before: kept.before, settings, messages: messages.slice(1, -1), reply };
}

/** A longer streamed reply is not kept. */
const mostCharacters = 8 * 1024 * 1024;

/** How messages go on from earlier ones: by the member `thread`, and in the `container` in which code ran. */
export const messagesConversation: ConversationRules = {
  mayMention: null,
  isAsked: true,
  recall,
  keep,
  hold,
  heldAtEnd: heldContainer,
  withoutTurns: withoutThread,
};

/** The same for questions for the number of tokens, which nobody goes on from. */
export const countTokensConversation: ConversationRules = {
  ...messagesConversation,
  keep: () => null,
  hold: () => null,
  heldAtEnd: null,
};

function recall(body: Buffer): Recall | null {
  const thread = readThread(body);
  const previousId = thread?.previousId ?? null;
  const containerId = namedId(withoutMembers(body, ofContainer)?.taken.get('container'));
  if (previousId === null && containerId === null) return null;
  const ids = [previousId, containerId].filter((id) => id !== null).filter(isLegalId);
  const recordIn = (found: Found, id: string | null) => {
    const value = id === null ? null : found[ids.indexOf(id)];
    return value ? readKept(value) : null;
  };
  return {
    ids,
    notTheirs: (ofOthers) =>
      previousId !== null && ofOthers.includes(previousId)
        ? threadNotFound(previousId)
        : containerId !== null && ofOthers.includes(containerId)
          ? containerNotFound(containerId)
          : null,
    before: (found) => turnsBefore(recordIn(found, previousId)),
    join(found, before, recordBytes) {
      const previous = recordIn(found, previousId);
      const container = recordIn(found, containerId);
      const recalled =
        thread === null || previousId === null
          ? { ...nothingJoined, turn: firstTurn(body) }
          : join(thread, previousId, { previous, before, recordBytes });
      if (recalled.unfound !== null || container === null || !isHolder(container)) return recalled;
      return {
        ...recalled,
        holder: container,
        unfound: containerNotFound(containerId ?? ''),
        isBeside: true,
      };
    },
  };
}

const ofContainer = new Set(['container']);
const nothingJoined = {
  body: null,
  holder: null,
  unfound: null,
  isBeside: false,
  turn: null,
  echo: null,
  input: null,
};

type Found = readonly (string | null)[];

interface FoundRecords {
  readonly previous: KeptMessage | Holder | null;
  /** The turns before that. */
  readonly before: Found;
  readonly recordBytes: number;
}

function join(thread: ThreadRequest, previousId: string, records: FoundRecords): Recalled {
  const { previous } = records;
  if (previous !== null && isHolder(previous))
    return { ...nothingJoined, holder: previous, unfound: threadNotFound(previousId) };
  const history = previous === null ? null : historyOf(previous, records.before);
  if (previous === null || history === null) return { ...nothingJoined, unfound: threadNotFound(previousId) };
  const whole = joinParts([...history, thread]);
  const said = { before: [...previous.before, previousId], bytesBefore: previous.bytes };
  const turn = turnAfter(said, { own: writePart(thread), all: () => writePart(whole) }, records.recordBytes);
  return { ...nothingJoined, body: thread.wholeBody(whole), turn };
}

/** @returns all that was said up to a reply; null when a part of it is gone */
function historyOf(previous: KeptMessage, before: Found): readonly ThreadPart[] | null {
  const turns = before.length < previous.before.length ? null : turnsIn(before, readKept);
  return turns === null ? null : [...turns, previous].flatMap(partsOf);
}

/** A reply that says nothing is left out: the vendor refuses a message without content, and no call hangs on it. */
function partsOf({ settings, messages, reply }: KeptMessage): readonly ThreadPart[] {
  const said = { settings, messages: messages.trim() };
  return reply === messageOf('[]') ? [said] : [said, { settings: noSettings, messages: reply }];
}

function threadNotFound(id: string): GatewayError {
  return memberError(
    'thread_not_found',
    'thread.previous_message_id',
    `No thread is known here that has the message${shownId(id)}.`,
  );
}

function containerNotFound(id: string): GatewayError {
  return memberError('item_not_found', 'container', `Container with id${shownId(id)} not found.`);
}

const containerKey = needleOf('"container"');
/** It is a member of an answer, or of the delta of an event at its end: what a model or a client has written stands deeper. */
const containerLevels = 2;

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool */
function heldContainer(end: Buffer, holder: () => Holder): KeptRecord | null {
  const { whole } = containerKey;
  // Most answers say that there is none, for which nobody walks through them.
  let at = needleAt(end, containerKey, 0);
  while (at !== -1 && objectAfterKey(end, at, whole.length) === -1) at = needleAt(end, containerKey, at + 1);
  if (at === -1) return null;
  const member = lastMemberAt(end, whole, containerLevels);
  const start = member === -1 ? -1 : objectAfterKey(end, member, whole.length);
  const behind = start === -1 ? -1 : endOfValue(end, start, mostDepth);
  const id = behind === -1 ? null : namedId(end.toString('utf8', start, behind));
  return id === null ? null : { id, value: writeHolder(holder(), 'messages') };
}

function keep({ body, recalled, newId, recordBytes, isPassed = false }: KeepRequest): Keep | null {
  const turn = recalled === null ? firstTurn(body) : recalled.turn;
  if (turn === null || Buffer.byteLength(turn.own) > recordBytes) return null;
  const streamed = new StreamedMessage(mostCharacters);
  const id = newId();
  return {
    // The client that goes on from a reply which was not kept is told so, and sends everything.
    ...plainKeep,
    id,
    bytes: turn.own.length + (turn.all?.length ?? 0),
    needed: turn.needed,
    see: (run) => streamed.see(run),
    gathered: () => streamed.held,
    records(end, isStream) {
      if (isStream && !isPassed) streamed.see(end);
      const reply = isStream ? replyOfStream(streamed) : replyOf(end);
      if (reply === null) return [];
      const given = isPassed ? (isStream ? streamed.id : idOf(end)) : `msg_${id}`;
      if (given === null || !isLegalId(given)) return [];
      return [{ id: given, value: writeTurn(turn, (part) => part, 'reply', reply) }];
    },
  };
}

function firstTurn(body: Buffer): KeptTurn | null {
  const thread = readThread(body);
  return thread === null || thread.previousId !== null ? null : turnAlone(writePart(thread));
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
  if (readThread(body) === null) return null;
  const value = writeHolder(holder, 'messages');
  const watch = isOnly ? watchFor('message', (id) => [{ id, value }]) : null;
  return { keep: isOnly ? null : holderKeep(value), watch };
}

function holderKeep(value: string): Keep {
  const streamed = new StreamedMessage(0);
  return {
    ...plainKeep,
    see: (run) => {
      if (streamed.id === null) streamed.see(run);
    },
    records(end, isStream) {
      if (isStream && end.includes(lastEvent)) streamed.see(end);
      if (isStream && !streamed.isWhole) return [];
      const id = isStream ? streamed.id : idOf(end);
      return id !== null && isLegalId(id) ? [{ id, value }] : [];
    },
  };
}

const ofId = new Set(['id']);

function idOf(answer: Buffer): string | null {
  return textOrNull(parseJson(withoutMembers(answer, ofId)?.taken.get('id') ?? 'null'));
}

/** A block of a message as it grows. */
interface GrowingBlock {
  readonly start: JsonObject;
  text: string;
  thinking: string;
  signature: string;
  /** JSON text of a call's arguments. */
  input: string;
  /** Of a text. */
  readonly citations: JsonObject[];
}

/**
 * The message that a stream brings, put together from its events as the SDK does it.
 * https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export class StreamedMessage {
  id: string | null = null;
  stopReason: string | null = null;
  /** Its last event has come. */
  isWhole = false;
  readonly #most: number;
  readonly #blocks: GrowingBlock[] = [];
  #held = 0;
  #isTooLong = false;

  /** @param most characters that are kept of it: a longer one is dropped at once, and has no content */
  constructor(most: number) {
    this.#most = most;
  }

  /** @param run whole events */
  see(run: Buffer): void {
    for (let at = 0; at < run.length; ) {
      const end = eventEnd(run, at);
      const event = eventObject(run, at, end);
      if (event !== null) this.#take(event);
      at = end;
    }
  }

  /** Characters that are in memory for its blocks. */
  get held(): number {
    return this.#held;
  }

  /** JSON text of its blocks; null where it is too long, or has not come to its end. */
  get content(): string | null {
    if (!this.isWhole || this.#isTooLong) return null;
    const blocks = this.#blocks.map(written).filter((block) => block !== null);
    return `[${blocks.join(',')}]`;
  }

  #take(event: JsonObject): void {
    switch (event.type) {
      case 'message_start':
        this.id = isObject(event.message) ? textOrNull(event.message.id) : null;
        return;
      case 'content_block_start':
        if (isObject(event.content_block)) this.#start(event.content_block);
        return;
      case 'content_block_delta':
        if (isObject(event.delta)) this.#grow(event.delta);
        return;
      case 'message_delta':
        if (isObject(event.delta)) this.stopReason = textOrNull(event.delta.stop_reason) ?? this.stopReason;
        return;
      case 'message_stop':
        this.isWhole = true;
    }
  }

  #start(block: JsonObject): void {
    if (this.#isTooLong) return;
    const [text, thinking] = [textOf(block.text), textOf(block.thinking)];
    const signature = textOf(block.signature);
    this.#blocks.push({ start: block, text, thinking, signature, input: '', citations: [] });
    this.#hold(blockWeight + JSON.stringify(block).length);
  }

  #grow(delta: JsonObject): void {
    const block = this.#blocks.at(-1);
    if (block === undefined || this.#isTooLong) return;
    if (isObject(delta.citation)) {
      block.citations.push(delta.citation);
      this.#hold(JSON.stringify(delta.citation).length);
    }
    for (const [member, value] of [
      ['text', delta.text],
      ['thinking', delta.thinking],
      ['signature', delta.signature],
      ['input', delta.partial_json],
    ] as const) {
      if (typeof value !== 'string') continue;
      block[member] += value;
      this.#hold(value.length);
    }
  }

  #hold(characters: number): void {
    if (this.#isTooLong) return;
    this.#held += characters;
    if (this.#held <= this.#most) return;
    this.#isTooLong = true;
    this.#blocks.length = 0;
    this.#held = 0;
  }
}

/** What a block counts for besides its texts. */
const blockWeight = 64;

/** @returns null for a call whose arguments were cut, which no request can have */
function written({ start, text, thinking, signature, input, citations }: GrowingBlock): string | null {
  switch (start.type) {
    case 'text':
      return JSON.stringify({ type: 'text', text, ...(citations.length > 0 ? { citations } : {}) });
    case 'thinking':
      return JSON.stringify({ type: 'thinking', thinking, signature });
    default: {
      if (input === '') return JSON.stringify(start);
      // As the model wrote it: numbers may be larger than a parser keeps them.
      const { input: _, ...rest } = start;
      return isObjectText(input) ? `${JSON.stringify(rest).slice(0, -1)},"input":${input}}` : null;
    }
  }
}
