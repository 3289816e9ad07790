import type { OwnSecrets } from '../../config/types.js';
import type { GatewayError } from '../../errors.js';
import { textStart } from '../../wire/json-skip.js';
import { looksLikeText } from '../../wire/plain-text.js';
import { openaiError } from '../error-formats/openai.js';
import { encodedKeyError, keyError } from '../error-formats/own-secrets.js';
import { vendorAccountErrorOf } from '../error-formats/vendor-account.js';

/**
 * The server event that tells a client of an error of the gateway's own.
 * @param id unique within the session
 */
export function errorEvent(error: GatewayError, id: string): string {
  const members = openaiError(error).slice(0, -1);
  return `{"type":"error","event_id":"event_${id}","error":${members},"event_id":null}}`;
}

/** An event's type stands in its first bytes, unless it is none of the protocol's own. */
const typeWithin = 256;
const typeKey = Buffer.from('"type"');
/** Without one of these no event of the protocol's own has an error: its name is written as it is, or in escapes. */
const errorMarks = [Buffer.from('error'), Buffer.from('\\u')];
const errorType = /error|fail/i;
/** What tells of an error is shorter. */
const longest = 1024 * 1024;

const quote = 0x22;
const openBrace = 0x7b;
const openBracket = 0x5b;

/**
 * What an upstream's message says of the gateway's account there, or would tell of it; null for what may pass.
 * @param isBinary a sound, where it does not look like a text
 */
export function vendorAccountErrorOfMessage(
  message: Buffer,
  isBinary: boolean,
  secrets: OwnSecrets,
): GatewayError | null {
  const ofKey = isBinary ? encodedKeyError(message, secrets) : keyError(message, secrets);
  if (ofKey !== null || message.length > longest || (isBinary && !looksLikeText(message))) return ofKey;
  const start = textStart(message);
  const type = ownType(message, start);
  const isOwn = type !== null && !errorType.test(type);
  // A type decides nothing else: what comes twice counts as its reader takes it.
  if (isOwn && !errorMarks.some((mark) => message.includes(mark))) return null;
  const standing = isOwn ? 'own' : message[start] === openBrace ? 'strange' : 'error';
  return vendorAccountErrorOf(message.toString('utf8', start), standing, secrets);
}

/** The type of an event of the protocol's own, all of which have a dot in it; null for anything else. */
function ownType(message: Buffer, start: number): string | null {
  const at = typeKeyAt(message, start);
  if (at === -1) return null;
  const begin = message.indexOf(quote, at + typeKey.length);
  if (begin === -1) return null;
  let end = begin + 1;
  while (end <= begin + typeWithin && message[end] !== quote) end++;
  if (message[end] !== quote) return null;
  const type = message.toString('latin1', begin + 1, end);
  return type.includes('.') && !type.includes('\\') ? type : null;
}

/**
 * Where the type's name stands, or -1: one that stands deeper is not the event's. A loop is faster here than the native
 * search, which costs more to call than the few bytes do.
 */
function typeKeyAt(message: Buffer, start: number): number {
  const last = Math.min(message.length, typeWithin) - typeKey.length;
  for (let at = start; at <= last; at++) {
    const byte = message[at];
    if (byte === quote && isTypeKey(message, at)) return at;
    if (at > start && (byte === openBrace || byte === openBracket)) return -1;
  }
  return -1;
}

function isTypeKey(message: Buffer, at: number): boolean {
  for (let i = 1; i < typeKey.length; i++) if (message[at + i] !== typeKey[i]) return false;
  return true;
}
