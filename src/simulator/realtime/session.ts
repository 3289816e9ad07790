import { createHash } from 'node:crypto';
import { composeAnswer } from '../answer/answer.js';
import { countTokens, words } from '../answer/tokens.js';
import type { Directive } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { Pace } from '../http/pace.js';
import { RequestError } from '../http/request-error.js';
import { parseObject } from '../http/route.js';
import { integer, invalid, textIn, textOrNull, unsupported } from '../openai/values.js';
import type { SocketLine } from '../sockets/line.js';
import type { Dialect } from './dialect.js';
import { play, readActs, type Stage, wishedNumber } from './faults.js';
import { Conversation, heardIn, type Item, readAudio, readItem, spokenItem } from './items.js';
import { inputTokens, promptOf } from './prompt.js';
import { newSession, transcribes, turnSettings, updatedSession } from './settings.js';
import type { Turn } from './turn.js';

interface SessionParts {
  readonly line: SocketLine;
  readonly dialect: Dialect;
  readonly model: string;
  /** Number of the session in the simulator. */
  readonly number: number;
  readonly pace: Pace;
  /** Whether a directive still applies. */
  isDue(directive: Directive): boolean;
  /** Echoes every message from now on. */
  echo(): void;
  /** Ignores every message from now on. */
  mute(): void;
}

/** A realtime session: one conversation, and at most one response at a time. Its ids count from 1. */
export class RealtimeSession {
  readonly #parts: SessionParts;
  readonly #conversation = new Conversation();
  readonly #conversationId: string;
  readonly #handlers: Readonly<Record<string, (event: JsonObject) => void>>;
  #session: JsonObject;
  #events = 0;
  #items = 0;
  #turns = 0;
  #turn: Turn | null = null;
  /** Length of the audio that is not committed; its content is ignored. */
  #audioBytes = 0;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#conversationId = `conv_${parts.number}`;
    this.#session = newSession(parts.dialect, `sess_${parts.number}`, parts.model);
    this.#handlers = {
      'session.update': (event) => this.#update(event),
      'input_audio_buffer.append': (event) => {
        this.#audioBytes += readAudio(event.audio, 'audio').length;
      },
      'input_audio_buffer.commit': () => this.#commit(),
      'input_audio_buffer.clear': () => {
        this.#audioBytes = 0;
        this.#emit('input_audio_buffer.cleared', {});
      },
      'conversation.item.create': (event) => this.#create(event),
      'conversation.item.retrieve': (event) => {
        const { value } = this.#conversation.find('retrieve', textIn(event, 'item_id', ''));
        this.#emit('conversation.item.retrieved', { item: value });
      },
      'conversation.item.truncate': (event) => this.#truncate(event),
      'conversation.item.delete': (event) => {
        const id = textIn(event, 'item_id', '');
        this.#conversation.delete(id);
        this.#emit('conversation.item.deleted', { item_id: id });
      },
      'response.create': (event) => this.#respond(event),
      'response.cancel': (event) => this.#cancel(event),
    };
  }

  /** Sends the first events of a session. */
  open(): void {
    this.#emit('session.created', { session: this.#session });
    const conversation = { id: this.#conversationId, object: 'realtime.conversation' };
    this.#emit('conversation.created', { conversation });
  }

  /** Handles a client's message; an invalid one is answered with an error event. */
  hear(message: Buffer): void {
    let eventId: string | null = null;
    try {
      const event = parseObject(message, 'invalid_json', 'message');
      eventId = textOrNull(event, 'event_id');
      const type = textIn(event, 'type', '');
      const handler = Object.hasOwn(this.#handlers, type) ? this.#handlers[type] : undefined;
      if (handler === undefined) {
        throw unsupported(type, Object.keys(this.#handlers), 'type');
      }
      handler(event);
    } catch (error) {
      this.#refuse(error, eventId);
    }
  }

  /** Handles a binary message, which the protocol does not have. */
  hearBinary(): void {
    const message = 'Binary messages are not supported: send each event as JSON text.';
    this.#refuse(new RequestError(400, message, null, 'invalid_message'), null);
  }

  #emit(type: string, members: object): void {
    this.#parts.line.send(this.#worded(type, members));
  }

  #worded(type: string, members: object): string {
    this.#events += 1;
    return JSON.stringify({ type, event_id: `event_${this.#events}`, ...members });
  }

  #refuse(error: unknown, eventId: string | null): void {
    if (!(error instanceof RequestError)) throw error;
    const { message, param, code = null } = error;
    this.#emit('error', {
      error: { type: 'invalid_request_error', code, message, param, event_id: eventId },
    });
  }

  #newItemId(): string {
    this.#items += 1;
    return `item_${this.#items}`;
  }

  #update(event: JsonObject): void {
    this.#session = updatedSession(this.#parts.dialect, this.#session, event.session);
    this.#emit('session.updated', { session: this.#session });
  }

  #commit(): void {
    const bytes = this.#audioBytes;
    if (bytes === 0) {
      const message = 'Error committing input audio buffer: the buffer is empty.';
      throw new RequestError(400, message, null, 'input_audio_buffer_commit_empty');
    }
    this.#audioBytes = 0;
    const item = spokenItem(this.#newItemId(), bytes);
    this.#emit('input_audio_buffer.committed', {
      previous_item_id: this.#conversation.lastId,
      item_id: item.id,
    });
    this.#add(item, null);
    if (transcribes(this.#parts.dialect, this.#session)) {
      this.#transcribe(item, bytes);
    }
  }

  #transcribe(item: Item, bytes: number): void {
    const event = 'conversation.item.input_audio_transcription';
    const at = { item_id: item.id, content_index: 0 };
    const transcript = heardIn(bytes);
    for (const delta of words(transcript)) {
      this.#emit(`${event}.delta`, { ...at, delta });
    }
    const content = [{ type: 'input_audio', transcript }];
    this.#conversation.replace({ ...item, value: { ...item.value, content } });
    const input = Math.ceil(item.audioMs / 100);
    const output = countTokens(transcript);
    const usage = {
      type: 'tokens',
      total_tokens: input + output,
      input_tokens: input,
      input_token_details: { text_tokens: 0, audio_tokens: input },
      output_tokens: output,
    };
    this.#emit(`${event}.completed`, { ...at, transcript, usage });
  }

  #create(event: JsonObject): void {
    const item = readItem(this.#parts.dialect, event.item, 'item', () => this.#newItemId());
    const call = item.value.call_id;
    if (
      item.type === 'function_call_output' &&
      !this.#conversation.items.some(({ type, value }) => type === 'function_call' && value.call_id === call)
    ) {
      const message = `Tool call ID '${String(call)}' not found in conversation.`;
      throw new RequestError(400, message, 'item.call_id', 'invalid_tool_call_id');
    }
    this.#add(item, textOrNull(event, 'previous_item_id'));
  }

  /** Adds a whole item to the conversation, and sends its events. */
  #add(item: Item, after: string | null): void {
    const told = { previous_item_id: this.#conversation.insert(item, after), item: item.value };
    if (this.#parts.dialect.isBeta) {
      this.#emit('conversation.item.created', told);
      return;
    }
    this.#emit('conversation.item.added', told);
    this.#emit('conversation.item.done', told);
  }

  #truncate(event: JsonObject): void {
    const item = this.#conversation.find('truncate', textIn(event, 'item_id', ''));
    const index = integer(event, 'content_index', 0, 0) ?? 0;
    const end = integer(event, 'audio_end_ms', 0, Infinity) ?? 0;
    if (item.role !== 'assistant' || item.audioMs === 0) {
      throw new RequestError(400, 'Only audio of the model can be truncated.', 'item_id', 'invalid_value');
    }
    if (end > item.audioMs) {
      const message = `Audio content of ${Math.floor(item.audioMs)}ms is already shorter than ${end}ms.`;
      throw new RequestError(400, message, 'audio_end_ms', 'invalid_value');
    }
    // It is unknown which words remain, so the transcript is removed.
    const content = [{ type: this.#parts.dialect.audioContent, transcript: null }];
    this.#conversation.replace({ ...item, text: '', audioMs: end, value: { ...item.value, content } });
    this.#emit('conversation.item.truncated', {
      item_id: item.id,
      content_index: index,
      audio_end_ms: end,
    });
  }

  #respond(event: JsonObject): void {
    if (this.#turn !== null) {
      throw new RequestError(
        400,
        `Conversation already has an active response in progress: ${this.#turn.id}. Wait until the response is finished before creating a new one.`,
        null,
        'conversation_already_has_active_response',
      );
    }
    const response = event.response ?? {};
    if (!isObject(response)) {
      throw invalid('response', 'an object');
    }
    const { dialect, line, pace, isDue } = this.#parts;
    const settings = turnSettings(dialect, this.#session, response);
    const items = this.#inputOf(response);
    const number = this.#turns + 1;
    const id = `resp_${number}`;
    const prompt = promptOf(items, settings, id);
    const directives = prompt.directives.filter(isDue);
    const acts = readActs(directives);
    const turn: Turn = {
      id,
      number,
      dialect,
      settings,
      answer: composeAnswer({ ...prompt, digest: digestOf(this.#parts.number, prompt.digest) }, 0),
      input: inputTokens(items, settings),
      conversationId: response.conversation === 'none' ? null : this.#conversationId,
      newItemId: () => this.#newItemId(),
      keep: (item) => this.#keep(item),
      cancelled: false,
    };
    const stage: Stage = {
      turn,
      line,
      emit: (type, members) => this.#emit(type, members),
      worded: (type, members) => this.#worded(type, members),
      mute: this.#parts.mute,
      echo: this.#parts.echo,
    };
    this.#turns = number;
    this.#turn = turn;
    const wished: Pace = {
      latencyMs: wishedNumber(directives, 'latency', pace.latencyMs),
      tokensPerSecond: wishedNumber(directives, 'rate', pace.tokensPerSecond),
    };
    play(stage, acts, wished).then(
      () => {
        this.#turn = null;
      },
      () => line.reset(),
    );
  }

  /** The input of a response: the conversation, or its own `input`. */
  #inputOf({ input = null }: JsonObject): readonly Item[] {
    if (input === null) {
      return this.#conversation.items;
    }
    if (!Array.isArray(input)) {
      throw invalid('response.input', 'an array of items');
    }
    return input.map((given: unknown, index) =>
      isObject(given) && given.type === 'item_reference'
        ? this.#conversation.find('retrieve', textIn(given, 'id', `response.input[${index}]`))
        : readItem(this.#parts.dialect, given, `response.input[${index}]`, () => this.#newItemId()),
    );
  }

  #keep(item: Item): string | null {
    const { items } = this.#conversation;
    const at = items.findIndex(({ id }) => id === item.id);
    if (at < 0) {
      return this.#conversation.insert(item);
    }
    this.#conversation.replace(item);
    return items[at - 1]?.id ?? null;
  }

  #cancel(event: JsonObject): void {
    const wanted = textOrNull(event, 'response_id');
    const turn = this.#turn;
    if (turn === null || turn.cancelled || (wanted !== null && wanted !== turn.id)) {
      const message = 'Cancellation failed: no active response found.';
      throw new RequestError(400, message, null, 'response_cancel_not_active');
    }
    turn.cancelled = true;
    this.#parts.line.wake();
  }
}

/** Makes the call ids of sessions differ. */
function digestOf(session: number, digest: string): string {
  return createHash('sha256').update(`${session} ${digest}`).digest('hex');
}
