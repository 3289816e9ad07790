import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { invalid, missing, textIn, unsupported } from '../openai/values.js';
import type { Dialect } from './dialect.js';

/** A client's samples have 24 kHz and 16 bits. */
const bytesPerMs = 48;

/** An item of a conversation. */
export interface Item {
  readonly id: string;
  readonly type: 'message' | 'function_call' | 'function_call_output';
  /** The item as shown to clients. */
  readonly value: JsonObject;
  /** Its role, or an empty string. */
  readonly role: string;
  /** Its text: written, spoken, or the output of a call. */
  readonly text: string;
  readonly images: number;
  readonly audioMs: number;
}

/** The transcription of samples, which carry no text. */
export function heardIn(bytes: number): string {
  return `Simulated transcription of ${bytes} bytes of audio.`;
}

/** Duration of this many bytes of samples. */
export function msOf(bytes: number): number {
  return bytes / bytesPerMs;
}

/** Decodes base64 audio. */
export function readAudio(audio: unknown, place: string): Buffer {
  if (typeof audio !== 'string' || audio.length % 4 === 1 || !/^[\w+/-]*={0,2}$/.test(audio)) {
    throw invalid(place, 'audio in base64');
  }
  return Buffer.from(audio, 'base64');
}

/**
 * Reads and checks an item that a client adds to a conversation.
 * @param place path of the item in its event
 * @throws RequestError
 */
export function readItem(dialect: Dialect, given: unknown, place: string, newId: () => string): Item {
  if (!isObject(given)) {
    throw given === undefined ? missing(place) : invalid(place, 'an object');
  }
  const { id: wished = null } = given;
  if (wished !== null && (typeof wished !== 'string' || wished === '' || wished.length > 64)) {
    throw invalid(`${place}.id`, 'a string of 1 to 64 characters');
  }
  const id = wished ?? newId();
  const head = { id, object: 'realtime.item', status: 'completed' };
  const quiet = { id, role: '', images: 0, audioMs: 0 };
  const type = textIn(given, 'type', place);
  switch (type) {
    case 'message':
      return readMessage(dialect, given, place, id);
    case 'function_call': {
      const [callId, name, input] = ['call_id', 'name', 'arguments'].map((each) =>
        textIn(given, each, place),
      );
      const value = { ...head, type, call_id: callId, name, arguments: input };
      return { ...quiet, type, value, text: `${name}${input}` };
    }
    case 'function_call_output': {
      const [callId, output = ''] = ['call_id', 'output'].map((each) => textIn(given, each, place));
      return { ...quiet, type, value: { ...head, type, call_id: callId, output }, text: output };
    }
    default:
      throw unsupported(type, ['message', 'function_call', 'function_call_output'], `${place}.type`);
  }
}

function readMessage(dialect: Dialect, given: JsonObject, place: string, id: string): Item {
  const types: Readonly<Record<string, readonly string[]>> = {
    user: ['input_text', 'input_audio', 'input_image'],
    system: ['input_text'],
    assistant: [dialect.textContent, dialect.audioContent],
  };
  const role = textIn(given, 'role', place);
  const allowed = Object.hasOwn(types, role) ? types[role] : undefined;
  if (allowed === undefined) {
    throw unsupported(role, Object.keys(types), `${place}.role`);
  }
  if (!Array.isArray(given.content)) {
    throw invalid(`${place}.content`, 'an array of parts');
  }
  const parts = given.content.map((part, index) => readPart(part, allowed, `${place}.content[${index}]`));
  return {
    id,
    type: 'message',
    role,
    text: parts.flatMap(({ text }) => (text === null ? [] : [text])).join('\n'),
    images: parts.filter(({ shown }) => shown.type === 'input_image').length,
    audioMs: parts.reduce((sum, part) => sum + part.audioMs, 0),
    value: {
      id,
      object: 'realtime.item',
      type: 'message',
      status: 'completed',
      role,
      content: parts.map(({ shown }) => shown),
    },
  };
}

interface Part {
  readonly shown: JsonObject;
  readonly text: string | null;
  readonly audioMs: number;
}

function readPart(part: unknown, allowed: readonly string[], place: string): Part {
  if (!isObject(part) || typeof part.type !== 'string' || !allowed.includes(part.type)) {
    throw unsupported(isObject(part) ? part.type : part, allowed, `${place}.type`);
  }
  const { type } = part;
  if (type === 'input_image') {
    const url = textIn(part, 'image_url', place);
    if (!/^data:image\/[\w.+-]+;base64,/.test(url)) {
      throw invalid(`${place}.image_url`, 'a data URL of an image');
    }
    return { shown: { ...part }, text: null, audioMs: 0 };
  }
  if (type.endsWith('audio')) {
    const bytes = part.audio === undefined ? 0 : readAudio(part.audio, `${place}.audio`).length;
    const transcript = typeof part.transcript === 'string' ? part.transcript : null;
    // The samples are not kept, since no answer depends on them.
    return { shown: { type, transcript }, text: transcript ?? heardIn(bytes), audioMs: msOf(bytes) };
  }
  const text = textIn(part, 'text', place);
  return { shown: { type, text }, text, audioMs: 0 };
}

/** The item that a commit makes of the received samples. */
export function spokenItem(id: string, bytes: number): Item {
  return {
    id,
    type: 'message',
    role: 'user',
    text: heardIn(bytes),
    images: 0,
    audioMs: msOf(bytes),
    value: {
      id,
      object: 'realtime.item',
      type: 'message',
      status: 'completed',
      role: 'user',
      content: [{ type: 'input_audio', transcript: null }],
    },
  };
}

const maxItems = 1000;

/** The items of a session in order; beyond the bound, the oldest are dropped. */
export class Conversation {
  readonly #items: Item[] = [];

  get items(): readonly Item[] {
    return this.#items;
  }

  get lastId(): string | null {
    return this.#items.at(-1)?.id ?? null;
  }

  /**
   * Inserts an item after another one.
   * @param after the id of that one, `root` for the beginning, null for the end
   * @returns the id of the item before it
   * @throws RequestError if there is no such item, or one with the same id
   */
  insert(item: Item, after: string | null = null): string | null {
    if (this.#items.some(({ id }) => id === item.id)) {
      throw new RequestError(
        400,
        `Error adding item: an item with id '${item.id}' already exists.`,
        'item.id',
        'item_create_duplicate_id',
      );
    }
    const at = after === 'root' ? 0 : after === null ? this.#items.length : this.#place('create', after) + 1;
    const before = this.#items[at - 1]?.id ?? null;
    this.#items.splice(at, 0, item);
    if (this.#items.length > maxItems) {
      this.#items.shift();
    }
    return before;
  }

  /** @throws RequestError */
  find(what: 'retrieve' | 'truncate', id: string): Item {
    return this.#items[this.#place(what, id)] as Item;
  }

  /** @throws RequestError */
  delete(id: string): void {
    this.#items.splice(this.#place('delete', id), 1);
  }

  /** Replaces the item with the same id, if it still exists. */
  replace(item: Item): void {
    const at = this.#items.findIndex(({ id }) => id === item.id);
    if (at >= 0) {
      this.#items[at] = item;
    }
  }

  #place(what: 'create' | 'retrieve' | 'truncate' | 'delete', id: string): number {
    const at = this.#items.findIndex((item) => item.id === id);
    if (at < 0) {
      const param = what === 'create' ? 'previous_item_id' : 'item_id';
      const message = `Cannot ${what} the item: there is no item with id '${id}'.`;
      throw new RequestError(400, message, param, `item_${what}_invalid_item_id`);
    }
    return at;
  }
}
