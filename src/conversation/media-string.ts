import { BACKSLASH, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../wire/bytes.js';
import { type JsonObject, parseObject } from '../wire/json.js';
import { isSpace } from '../wire/json-skip.js';
import type { ArgumentPlaces } from './argument-places.js';
import { isUnsignedToken } from './signature.js';

/*
 * Decides whether a string in an unparsed body is media, or something else whose tokens do not depend on its length.
 * Only strings at the places where a protocol has such data count, and none in the arguments or the result of a tool call.
 * In doubt a string is text: otherwise clients could disguise any text as media.
 */

/**
 * Members that contain media as bare base64 or a `data:` URL, or data that a vendor encrypted or signed. Some are
 * lists.
 */
const mediaMembers = new Set([
  'b64_json',
  'image',
  'images',
  'image_url',
  'image_tail',
  'mask',
  'audio',
  'video',
  'file_data',
  'bytesBase64Encoded',
  'binary_data_base64',
  'encrypted_content',
  'signature',
  'thoughtSignature',
  'thought_signature',
]);
/** Members that contain media if they are a `data:` URL. */
const urlMembers = new Set(['url', 'file_url', 'image_urls']);
const longestMember = 'binary_data_base64'.length;
/** Members with an object whose `data` is base64, for objects whose media type may follow the data. */
const base64Holders = new Set(['inlineData', 'inline_data', 'input_audio']);
/** Types of objects whose `data` is base64, or was encrypted by a vendor. */
const base64Types = new Set<unknown>(['base64', 'redacted_thinking']);
/** Types of media whose tokens do not depend on their length. A file of another type is text to a model. */
const lengthlessMedia = /^(?:image|audio|video)\/|^application\/(?:pdf$|msword$|vnd\.)/i;
const dataUrl = /^data:([^;,]*)[^,]*;base64,/i;
/** Number of leading bytes of a string that identify it. */
const headBytes = 128;
/** Number of bytes before and after a string in which the other members of its object are looked for. */
const siblingBytes = 256;
const bareBase64 = /^[A-Za-z0-9+/_-]+=*$/;
/** Maximum number of strings of a list that are skipped to find the list's name. */
const mostPassed = 16;
/** Maximum number of bytes of white space between tokens of JSON. */
const mostSpace = 1024;
/** Number of bytes in which the end of a string is looked for. */
const longestMedium = 8 * 1024 * 1024;

/** A string that was classified. A later one may be in the same list. */
export interface ClassifiedString {
  /** Position of its opening quote. */
  readonly quote: number;
  readonly isMedium: boolean;
  /** Name of the list that contains it. Null for none. */
  readonly list: Name | null;
}

/**
 * Classifies the string that begins at a quote as media (or the like) or as text.
 * @param last the string that was classified before, so that no byte is scanned twice; null for none
 */
export function classifyString(
  body: Buffer,
  quote: number,
  last: ClassifiedString | null,
  places: ArgumentPlaces,
): ClassifiedString {
  const { member, isListed } = memberOf(body, quote, last);
  const isMedium = member !== null && isMediaIn(body, member, quote) && !places.hold(quote);
  return { quote, isMedium, list: isListed ? member : null };
}

function isMediaIn(body: Buffer, member: Name, quote: number): boolean {
  const { name } = member;
  if (name === 'data') return isMediaData(body, member.quote, quote);
  const head = body.toString('latin1', quote + 1, quote + headBytes).replaceAll('\\/', '/');
  const mediaType = dataUrl.exec(head)?.[1];
  if (mediaType !== undefined)
    return lengthlessMedia.test(mediaType) && (mediaMembers.has(name) || urlMembers.has(name));
  return mediaMembers.has(name) && bareBase64.test(head) && !isUnsignedToken(head);
}

/** Returns the name of the member whose value is the string that begins at a quote; null for another string, or in doubt. */
export function memberNameOf(body: Buffer, quote: number): string | null {
  const { member, isListed } = memberOf(body, quote, null);
  return isListed || member === null ? null : member.name;
}

interface Place {
  /** The member with the string or with its list. Null if that is unclear. */
  readonly member: Name | null;
  readonly isListed: boolean;
}

const nowhere: Place = { member: null, isListed: false };

function memberOf(body: Buffer, quote: number, last: ClassifiedString | null): Place {
  if (body[quote - 1] === BACKSLASH) return nowhere;
  let at = beforeSpace(body, quote);
  let passed = 0;
  for (; body[at] === COMMA; passed++) {
    const end = beforeSpace(body, at);
    if (body[end] !== QUOTE || passed === mostPassed) return nowhere;
    const start = lastOf(body, QUOTE, Math.max(last?.quote ?? 0, end - longestMedium), end);
    if (start === -1 || body[start - 1] === BACKSLASH) return nowhere;
    if (start === last?.quote) return { member: last.list, isListed: last.list !== null };
    at = beforeSpace(body, start);
  }
  const isListed = body[at] === OPEN_BRACKET;
  if (isListed) at = beforeSpace(body, at);
  // After a comma outside a list, the string is the name of a member.
  else if (passed > 0) return nowhere;
  return { member: body[at] === COLON ? nameBefore(body, at) : null, isListed };
}

interface Name {
  readonly name: string;
  /** Position of its opening quote. */
  readonly quote: number;
}

/** Returns the name of a member before its colon. Null if the name is escaped, or too long to be relevant. */
function nameBefore(body: Buffer, colon: number): Name | null {
  const end = beforeSpace(body, colon);
  if (body[end] !== QUOTE) return null;
  const quote = lastOf(body, QUOTE, Math.max(0, end - longestMember - 1), end);
  if (quote === -1 || body[quote - 1] === BACKSLASH) return null;
  return { name: body.toString('latin1', quote + 1, end), quote };
}

/** @param key position of the name `data` @param quote position of its value */
function isMediaData(body: Buffer, key: number, quote: number): boolean {
  const { members, brace } = membersBefore(body, key);
  if (brace === -1) return false;
  const told = isMediaHolder(members);
  if (told !== null) return told;
  const colon = beforeSpace(body, brace);
  const holder = body[colon] === COLON ? nameBefore(body, colon) : null;
  const membersAfter = membersBehind(body, quote);
  if (membersAfter === null) return false;
  const behind = isMediaHolder(membersAfter);
  if (behind !== null) return behind;
  if (holder === null) return false;
  // `data` is the first member, and the others are beyond the bytes that are searched.
  if (holder.name === 'source') return membersBefore(body, holder.quote).members.type === 'image';
  return base64Holders.has(holder.name);
}

/** Returns whether `data` beside some members is media, or null if they do not say. */
function isMediaHolder(members: JsonObject): boolean | null {
  let isTold = base64Types.has(members.type);
  for (const each of [members.mimeType, members.mime_type, members.media_type]) {
    if (typeof each !== 'string') continue;
    if (!lengthlessMedia.test(each)) return false;
    isTold = true;
  }
  if (members.type === 'text') return false;
  return isTold ? true : null;
}

interface MembersBefore {
  readonly members: JsonObject;
  /** Position of the object's opening brace. -1 if that is unclear. */
  readonly brace: number;
}

function membersBefore(body: Buffer, key: number): MembersBefore {
  const brace = lastOf(body, OPEN_BRACE, Math.max(0, key - siblingBytes), key);
  const end = beforeSpace(body, key);
  if (brace === -1 || (end !== brace && body[end] !== COMMA)) return { members: {}, brace: -1 };
  const members = end === brace ? {} : parseObject(`${body.toString('utf8', brace, end)}}`);
  return { members: members ?? {}, brace: members === null ? -1 : brace };
}

/** Returns the members after a value, or none if its end was not found. Null if they are unclear. */
function membersBehind(body: Buffer, quote: number): JsonObject | null {
  const end = body.subarray(quote + 1, quote + longestMedium).indexOf(QUOTE);
  if (end === -1) return {};
  const behind = quote + 1 + end + 1;
  const [, members] = /^\s*(?:,([^}]*))?\}/.exec(body.toString('utf8', behind, behind + siblingBytes)) ?? [
    null,
  ];
  if (members === null) return null;
  return parseObject(`{${members ?? ''}}`);
}

function lastOf(body: Buffer, byte: number, from: number, end: number): number {
  const at = body.subarray(from, end).lastIndexOf(byte);
  return at === -1 ? -1 : from + at;
}

/**
 * Returns the last position before another one that is not white space. If there is too much white space, the position
 * is one of it. -1 for none.
 */
function beforeSpace(body: Buffer, from: number): number {
  const end = Math.max(0, from - mostSpace);
  let at = from - 1;
  while (at >= end && isSpace(body[at] as number)) at--;
  return at;
}
