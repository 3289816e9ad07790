import type { OwnSecrets } from '../../config/types.js';
import type { GatewayError } from '../../errors.js';
import { skipSpace } from '../../wire/json-space.js';
import { openaiError } from '../error-formats/openai.js';
import { vendorAccountFailureOf } from '../error-formats/vendor-account.js';

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
const errorKey = Buffer.from('"error"');
/** What tells of an error is shorter. */
const longest = 1024 * 1024;
/** So many bytes tell a text from a sound. */
const textWithin = 32;

const quote = 0x22;
const openBrace = 0x7b;
const openBracket = 0x5b;

/**
 * What an upstream's message says of the gateway's account there, or would tell of it; null for what may pass.
 * @param isBinary a sound, where it does not look like a text
 */
export function vendorAccountFailureIn(
  message: Buffer,
  isBinary: boolean,
  secrets: OwnSecrets,
): GatewayError | null {
  if (isBinary && !isText(message)) return null;
  const type = ownType(message);
  if (type !== null && !mayHoldError(type)) return null;
  if (message.length > longest || (type !== null && !message.includes(errorKey))) return null;
  const isObject = message[skipSpace(message, 0)] === openBrace;
  const standing = type !== null ? 'own' : isObject ? 'strange' : 'error';
  return vendorAccountFailureOf(message.toString('utf8'), standing, secrets);
}

/** Of the protocol's own events, those that have a place for an error. */
function mayHoldError(type: string): boolean {
  return type === 'response.done' || type.endsWith('.failed');
}

/** The type of an event of the protocol's own, all of which have a dot in it; null for anything else. */
function ownType(message: Buffer): string | null {
  const at = message.subarray(0, typeWithin).indexOf(typeKey);
  if (at === -1) return null;
  // One that stands deeper is not the event's.
  for (let i = skipSpace(message, 0) + 1; i < at; i++)
    if (message[i] === openBrace || message[i] === openBracket) return null;
  const begin = message.indexOf(quote, at + typeKey.length);
  const end = message.indexOf(quote, begin + 1);
  if (begin === -1 || end === -1 || end - begin > typeWithin) return null;
  const type = message.toString('latin1', begin + 1, end);
  return type.includes('.') && !type.includes('\\') ? type : null;
}

/** Whether what came as bytes is a text all the same. */
function isText(message: Buffer): boolean {
  const first = message[skipSpace(message, 0)];
  if (first === openBrace || first === openBracket) return true;
  if (message.length === 0) return false;
  for (let i = 0; i < Math.min(message.length, textWithin); i++) {
    const byte = message[i] as number;
    if (byte < 0x20 || byte > 0x7e) return false;
  }
  return true;
}
