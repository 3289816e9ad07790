import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOT,
  LOWER_C,
  LOWER_I,
  LOWER_R,
  LOWER_S,
  LOWER_T,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from '../../wire/bytes.js';
import { type JsonObject, parseObject } from '../../wire/json.js';
import { afterColon, endOfNumber, endOfString, standsAt, textStart } from '../../wire/json-skip.js';
import { isPlainAscii } from '../../wire/plain-text.js';

/**
 * The type is within the first bytes of an event, before any long member, except from servers that sort their members.
 */
const typeWithin = 256;

/** The client requests a response. */
const responseCreate = 'response.create';
/** A response has ended. */
export const responseDone = 'response.done';
/** A transcript of the client's speech. */
export const transcribed = 'conversation.item.input_audio_transcription.completed';

/** The client's speech has become an item. */
export const committed = 'input_audio_buffer.committed';

/** The server ends a turn of the client by itself, and begins a response if the session says so. */
export const speechStopped = 'input_audio_buffer.speech_stopped';
export const timeoutTriggered = 'input_audio_buffer.timeout_triggered';

/** Events of the server with the session as it is from then on, of the protocol since 2025 and of its beta. */
export const sessionEvents: readonly string[] = [
  ...['session.created', 'session.updated'],
  ...['transcription_session.created', 'transcription_session.updated'],
];

const typeKey = Buffer.from('"type"');
/** Offset of the second word of `response.done`. */
const secondWord = 'response.'.length;
const seconds = [...'dc'].map((letter) => letter.charCodeAt(0));

/** What the types of other events begin with that `Transcribers` and `AskedResponses` read. */
const ofSession = Buffer.from('session.');
const ofTranscription = Buffer.from('transcription_session.');
const ofCommitted = Buffer.from(committed);
const ofSpeechEnd = Buffer.from(speechStopped);
const ofTimeout = Buffer.from(timeoutTriggered);

/**
 * Returns whether a type that begins at an offset may be one of those above, or one that `OpenUsage` looks for. False for
 * nearly all events, which are pieces of audio and text.
 */
function mayBeOfUsage(event: Buffer, at: number): boolean {
  const first = event[at];
  if (first === LOWER_S) return standsAt(event, at, ofSession);
  if (first === LOWER_T) return standsAt(event, at, ofTranscription);
  if (first === LOWER_I)
    return (
      standsAt(event, at, ofCommitted) || standsAt(event, at, ofSpeechEnd) || standsAt(event, at, ofTimeout)
    );
  return first === LOWER_C || (first === LOWER_R && seconds.includes(event[at + secondWord] as number));
}

/** A server event on whose type usage may depend. */
export class ServerEvent {
  readonly bytes: Buffer;
  readonly type: string;
  #object: JsonObject | null | undefined = undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.type = typeOfEvent(bytes);
  }

  /** The event's JSON, parsed once; null if it is not an object. */
  get object(): JsonObject | null {
    if (this.#object === undefined) this.#object = parseObject(this.bytes.toString('utf8'));
    return this.#object;
  }
}

/** Returns whether usage may depend on a server event: `OpenUsage` and `Transcribers` need only deltas of any other. */
export function mayHaveUsage(event: Buffer): boolean {
  const type = typeAt(event, false);
  return type !== -1 && mayBeOfUsage(event, type);
}

/**
 * Returns the type of an event as it is written, or an empty string if it has none. A `type` elsewhere in the event
 * does not count: clients choose the ids of items, which are repeated in events.
 */
export function typeOfEvent(event: Buffer): string {
  const at = typeAt(event, false);
  const close = at === -1 ? -1 : endOfString(event, at);
  return close === -1 ? '' : event.toString('latin1', at, close);
}

/**
 * Finds the type of an event, which is a string.
 * @param isFirst whether it counts only if no member before it is an object or a list
 * @returns the offset of its first letter, or -1
 */
function typeAt(event: Buffer, isFirst: boolean): number {
  let depth = 0;
  for (let at = 0; at < event.length; at++) {
    const byte = event[at];
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++;
      if (isFirst && depth > 1) return -1;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    else if (byte === QUOTE) {
      const close = endOfString(event, at + 1);
      if (close === -1) return -1;
      const value = depth === 1 && standsAt(event, at, typeKey) ? afterColon(event, close) : -1;
      if (value !== -1) return event[value] === QUOTE ? value + 1 : -1;
      at = close;
    }
  }
  return -1;
}

/**
 * Returns whether a client's event requests a response.
 * @param isBinary bytes that do not begin like an object are then audio
 */
export function asksForResponse(event: Buffer, isBinary: boolean): boolean {
  const type = typeOfEvent(event);
  if (type !== '' && !type.includes('\\')) return type === responseCreate;
  // Escapes, which the name may have as well, are read by the parser alone.
  const start = textStart(event);
  if (type === '' && isBinary && event[start] !== OPEN_BRACE) return false;
  return parseObject(event.toString('utf8', start))?.type === responseCreate;
}

/** Returns the bytes of a server event that contain its type. Types are searched for including their quotes. */
export function typeBytes(event: Buffer): Buffer {
  return event.length > typeWithin ? event.subarray(0, typeWithin) : event;
}

/** Bit that turns `A` to `Z` into `a` to `z`. */
const lower = 0x20;
const errorWord = Buffer.from('error');
const failWord = Buffer.from('fail');

/** Members that concern neither a model, usage nor an error, and cannot redirect an upstream. */
const plainNames = [
  ...['type', 'event_id', 'audio', 'delta'],
  ...['response_id', 'item_id', 'output_index', 'content_index'],
].map((name) => Buffer.from(`"${name}"`));
/** Index in `plainNames` by the first letter, or `none`. */
const none = plainNames.length;
const nameBegins = new Uint8Array(256).fill(none);
for (const [number, name] of plainNames.entries()) nameBegins[name[1] as number] = number;

/**
 * Returns whether a client's event is clearly a piece of audio or a similarly simple event: a JSON object with only
 * harmless members, whose values are numbers or strings of plain characters. Most events of a session are, and this
 * check costs a fraction of parsing them. False is inconclusive.
 */
export function isPlainEvent(event: Buffer): boolean {
  return plainTypeAt(event) !== -1 && isPlainAscii(event);
}

/**
 * Finds the type of an event that only has known harmless members, each at most once. Their strings may contain
 * anything, and are skipped by a search for their ends.
 * @returns the offset of the type's first letter, or -1, which is inconclusive
 */
function plainTypeAt(event: Buffer): number {
  const last = event.length - 1;
  if (event[0] !== OPEN_BRACE || event[last] !== CLOSE_BRACE) return -1;
  let seen = 0;
  let type = -1;
  for (let at = 1; ; at = behind(event, at)) {
    const name = nameAt(event, at);
    if (name === -1 || (seen & (1 << name)) !== 0) return -1;
    seen |= 1 << name;
    at += (plainNames[name] as Buffer).length;
    if (event[at] !== COLON) return -1;
    at = behind(event, at);
    if (event[at] === QUOTE) {
      if (name === 0) type = at + 1;
      const end = endOfString(event, at + 1);
      at = end === -1 ? -1 : end + 1;
    } else at = endOfNumber(event, at);
    if (at === -1) return -1;
    if (at === last) return type;
    if (event[at] !== COMMA) return -1;
  }
}

/** @returns which of the names is at an offset, or -1 */
function nameAt(event: Buffer, at: number): number {
  const name = nameBegins[event[at + 1] as number] as number;
  return name < none && standsAt(event, at, plainNames[name] as Buffer) ? name : -1;
}

/** @returns the offset after a colon or comma and an optional blank */
function behind(event: Buffer, at: number): number {
  return event[at + 1] === SPACE ? at + 2 : at + 1;
}

/**
 * Returns whether a server event is clearly one of the protocol's own that reports neither an error nor usage, such as
 * a piece of audio or text. Detects nearly all of these by their names and type. False is inconclusive.
 */
export function isPiece(event: Buffer): boolean {
  const type = plainTypeAt(event);
  return type !== -1 && type < typeWithin && !mayBeOfUsage(event, type) && isOwnType(event, type);
}

/**
 * Returns whether a message is an event of one of the protocol's own types that is not that of an error. Such a type is
 * within the first bytes.
 */
export function hasOwnType(message: Buffer): boolean {
  const type = typeAt(message, true);
  return type !== -1 && type < typeWithin && isOwnType(message, type);
}

/** Returns whether a type is one of the protocol's own, all of which contain a dot, and not that of an error. */
function isOwnType(event: Buffer, start: number): boolean {
  let hasDot = false;
  for (let at = start; event[at] !== QUOTE; at++) {
    if (event[at] === BACKSLASH || at > start + typeWithin) return false;
    if (event[at] === DOT) hasDot = true;
    else if (saysAt(event, at, errorWord) || saysAt(event, at, failWord)) return false;
  }
  return hasDot;
}

function saysAt(event: Buffer, at: number, word: Buffer): boolean {
  for (let i = 0; i < word.length; i++) if (((event[at + i] as number) | lower) !== word[i]) return false;
  return true;
}
