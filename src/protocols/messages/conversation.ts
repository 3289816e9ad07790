import { watchFor } from '../../conversation/answer-id.js';
import {
  type ConversationRules,
  type HeldTurn,
  type Holder,
  isHolder,
  isLegalId,
  isStrangeId,
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
  memberError,
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
import { eventEnd, eventObject } from '../../wire/sse.js';

/**
 * Message threads: the client sends only the new messages of a conversation, and the id of the reply that it continues
 * from. A thread is recognised by the member `thread`, not by the beta header, whose name changes with its versions.
 */

/** A part of a thread: settings and messages. */
interface ThreadPart {
  /** JSON text of an object with those settings of the thread that this part contains. */
  readonly settings: string;
  /** JSON texts of messages, separated by commas. */
  readonly messages: string;
}

/** A request of a thread, with what it contains itself. */
interface ThreadRequest extends ThreadPart {
  /** Id of the reply that it continues from; null if it begins a thread. */
  readonly previousId: string | null;
  /**
   * Makes the body of the same request with the whole conversation. It begins a thread: an upstream with threads of its
   * own may store it as one.
   */
  wholeBody(whole: ThreadPart): Buffer;
}

const noSettings = '{}';

/** The SDK omits these from a request that continues a thread, since the vendor keeps them with the thread. */
const settingNames = ['system', 'tools'] as const;
const ofSettings: ReadonlySet<string> = new Set(settingNames);
const threadAlone: ReadonlySet<string> = new Set(['thread']);
const ofTheThread: ReadonlySet<string> = new Set(['thread', 'messages', ...settingNames]);

/**
 * Reads the thread of a body.
 * @param body a body that passed the check of untouched requests
 * @returns null for a body without a thread, or with one of an unknown type
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
 * Makes a body for an upstream that would ignore the thread, and answer for a part of the conversation.
 * @param body a body that passed the check of untouched requests
 * @returns the body without the member; null if it has no thread
 * @throws {GatewayError} `thread_unsupported_request` for a body that continues from a reply, and for an unknown type
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
 * Joins the parts of a thread, the earliest first. Settings of a later part replace earlier ones. Each part is read
 * only once, since its client determines what a thread contains.
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

/** @returns undefined for a value that is not a thread, or one of an unknown type */
function previousIdOf(written: string): string | null | undefined {
  const { type, previous_message_id: id } = parseObject(written) ?? {};
  if (type === 'create') return null;
  return type === 'continue' && typeof id === 'string' ? id : undefined;
}

/** One turn of a thread, kept under the id of its reply in the client's own JSON. */
interface KeptMessage extends ThreadPart, KeptChain {
  /** JSON text of the reply as a message of a request. */
  readonly reply: string;
}

/** Writes what the client sent in a turn, as members of its record. */
function writePart({ settings, messages }: ThreadPart): string {
  return `"settings":${settings},"messages":[${messages}]`;
}

/** @returns the turn or its holder, or null for a value of another form */
export function readKept(value: string): KeptMessage | Holder | null {
  const kept = readRecord(value, 'messages', ['settings', 'messages', 'reply']);
  if (kept === null || isHolder(kept)) return kept;
  const [settings = '', messages = '', reply = ''] = kept.texts;
  return { bytes: kept.bytes, before: kept.before, settings, messages: messages.slice(1, -1), reply };
}

/** A streamed reply that is longer is not kept. */
const mostCharacters = 8 * 1024 * 1024;

/** How messages continue from earlier ones: by the member `thread`, and in the `container` in which code ran. */
export const messagesConversation: ConversationRules = {
  mayMention: null,
  onlyContinuing: true,
  recall,
  keep,
  hold,
  heldAtEnd: heldContainer,
  withoutTurns: withoutThread,
};

/** The same for requests that count tokens. No request continues from them. */
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
  if (previousId !== null && isStrangeId(previousId)) throw threadNotFound(previousId);
  if (containerId !== null && isStrangeId(containerId)) throw containerNotFound(containerId);
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
  /** The turns before that one. */
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

/** @returns everything that was said up to a reply; null if a part of it is gone */
function historyOf(previous: KeptMessage, before: Found): readonly ThreadPart[] | null {
  const turns = before.length < previous.before.length ? null : turnsIn(before, readKept);
  return turns === null ? null : [...turns, previous].flatMap(partsOf);
}

/**
 * Returns the parts of a turn. A reply without content is left out: the vendor refuses a message without content, and
 * such a reply has no calls.
 */
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
/**
 * The container is a member of an answer, or of the delta of an event at its end. Text of a model or client stands
 * deeper.
 */
const containerLevels = 2;

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool */
function heldContainer(end: Buffer, holder: () => Holder): KeptRecord | null {
  const { whole } = containerKey;
  // Most answers have null here. Those need no walk through their members.
  let at = needleAt(end, containerKey, 0);
  while (at !== -1 && objectAfterKey(end, at, whole.length) === -1) at = needleAt(end, containerKey, at + 1);
  if (at === -1) return null;
  const member = lastMemberAt(end, whole, containerLevels);
  const start = member === -1 ? -1 : objectAfterKey(end, member, whole.length);
  const behind = start === -1 ? -1 : endOfValue(end, start, mostDepth);
  const id = behind === -1 ? null : namedId(end.toString('utf8', start, behind));
  return id === null || !isLegalId(id) ? null : { id, value: writeHolder(holder(), 'messages') };
}

function keep({ body, recalled, newId, recordBytes, isPassed }: KeepRequest): Keep | null {
  const turn = recalled === null ? firstTurn(body) : recalled.turn;
  if (turn === null || Buffer.byteLength(turn.own) > recordBytes) return null;
  const streamed = new StreamedMessage(mostCharacters);
  const id = newId();
  return {
    // A client that continues from a reply that was not kept gets an error, and sends the whole conversation.
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
 * @returns null for an answer that no request continues from: after a refusal the SDK drops the turn, and a compaction,
 * which replaces what is kept, is sent back to begin a new thread
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

/** Records that the upstream has the thread under the id of its reply. The first event of a stream contains the id. */
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

/** A block of a message while it grows. */
interface GrowingBlock {
  readonly start: JsonObject;
  text: string;
  thinking: string;
  signature: string;
  /** JSON text of a call's arguments. */
  input: string;
  /** Citations of a text. */
  readonly citations: JsonObject[];
}

/**
 * A message that is assembled from the events of its stream, as the SDK does it.
 * https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export class StreamedMessage {
  id: string | null = null;
  stopReason: string | null = null;
  /** The last event has arrived. */
  isWhole = false;
  readonly #most: number;
  readonly #blocks: GrowingBlock[] = [];
  #held = 0;
  #isTooLong = false;

  /** @param most characters to keep of the message: a longer one is dropped immediately, and has no content */
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

  /** Characters that its blocks occupy in memory. */
  get held(): number {
    return this.#held;
  }

  /** JSON text of its blocks; null if it is too long or not complete. */
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

/** Characters that a block counts for besides its texts. */
const blockWeight = 64;

/** @returns null for a call whose arguments were cut: no request can contain it */
function written({ start, text, thinking, signature, input, citations }: GrowingBlock): string | null {
  switch (start.type) {
    case 'text':
      return JSON.stringify({ type: 'text', text, ...(citations.length > 0 ? { citations } : {}) });
    case 'thinking':
      return JSON.stringify({ type: 'thinking', thinking, signature });
    default: {
      if (input === '') return JSON.stringify(start);
      // The arguments stay as the model wrote them, since a parser may lose digits of large numbers.
      const { input: _, ...rest } = start;
      return isObjectText(input) ? `${JSON.stringify(rest).slice(0, -1)},"input":${input}}` : null;
    }
  }
}
