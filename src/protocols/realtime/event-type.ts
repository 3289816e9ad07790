import { afterColon, endOfString } from '../../wire/json-skip.js';

/** Where an event's type stands: before everything that may be long, but for servers that sort their members. */
export const typeWithin = 256;

/** A client asks for a response. */
const responseCreate = 'response.create';
/** A response has ended. */
export const responseDone = 'response.done';
/** What the client has said, as text. */
export const transcribed = 'conversation.item.input_audio_transcription.completed';

const typeKey = Buffer.from('"type"');
const quote = 0x22;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const colon = 0x3a;
const letterT = 0x74;
const letterP = 0x70;
const letterR = 0x72;
const letterC = 0x63;
const letterV = 0x76;
/** How far behind its first letter the second word of `response.done` begins. */
const secondWord = 'response.'.length;
const seconds = [...'dc'].map((letter) => letter.charCodeAt(0));

/**
 * Whether the type of a server event may be one of those that are looked for here and in `OpenUsage`: false for nearly
 * all of them, pieces of sound and text, by a look at the letters behind the first quotes.
 */
export function mayTellUsage(event: Buffer): boolean {
  const end = Math.min(event.length, typeWithin);
  let hasType = false;
  let isWithin = false;
  for (let at = 0; at < end; at++) {
    const byte = event[at];
    // What stands behind an inner bracket is no member of the event's, as far as these bytes tell.
    if (byte !== quote) isWithin ||= at > 0 && (byte === openBrace || byte === openBracket);
    else if (mayBeOfUsage(event, at + 1)) return true;
    else
      hasType ||=
        !isWithin &&
        event[at + 1] === letterT &&
        event[at + 3] === letterP &&
        event[at + 5] === quote &&
        // Else it is an id that a client has called so.
        event[at + 6] === colon;
  }
  return !hasType;
}

/** The same for a type that begins at a place. */
export function mayBeOfUsage(event: Buffer, at: number): boolean {
  const first = event[at];
  // Of `conversation`, which `content_index` is not.
  if (first === letterC) return event[at + 3] === letterV;
  return first === letterR && seconds.includes(event[at + secondWord] as number);
}

/**
 * The type of an event as it is written; empty where it has none. No name of a type that stands elsewhere counts as its own: clients
 * choose the ids of items, which come back in events.
 */
export function typeOfEvent(event: Buffer): string {
  let depth = 0;
  for (let at = 0; at < event.length; at++) {
    const byte = event[at];
    if (byte === openBrace || byte === openBracket) depth++;
    else if (byte === closeBrace || byte === closeBracket) depth--;
    else if (byte === quote) {
      const close = endOfString(event, at + 1);
      if (close === -1) return '';
      const value = depth === 1 && isTypeKey(event, at, close) ? afterColon(event, close) : -1;
      if (value !== -1) return textAt(event, value);
      at = close;
    }
  }
  return '';
}

/** @returns the string that begins at a place, or an empty one where there is none, or not its end */
function textAt(bytes: Buffer, at: number): string {
  const close = bytes[at] === quote ? endOfString(bytes, at + 1) : -1;
  return close === -1 ? '' : bytes.toString('latin1', at + 1, close);
}

function isTypeKey(event: Buffer, at: number, close: number): boolean {
  return close - at === typeKey.length - 1 && event.compare(typeKey, 0, typeKey.length, at, close + 1) === 0;
}

/**
 * Whether a client's event may ask for a response: one does whose type says so, or is not plain to see.
 * @param isBinary bytes without a type are sound then
 */
export function mayAskForResponse(event: Buffer, isBinary: boolean): boolean {
  const type = typeOfEvent(event);
  return type === responseCreate || type.includes('\\') || (type === '' && !isBinary);
}

/** The bytes of a server event in which its type stands, of which types are looked for with their quotes. */
export function typeBytes(event: Buffer): Buffer {
  return event.length > typeWithin ? event.subarray(0, typeWithin) : event;
}
