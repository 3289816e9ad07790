import { type JsonObject, parseObject } from '../wire/json.js';
import { isSpace } from '../wire/json-skip.js';

/*
 * Whether a string of a body that nobody has parsed is a medium or another thing that counts no tokens by its length. Only
 * what stands where a protocol has such things is one: in doubt a string is a text, since clients could pass any
 * text off for a medium otherwise.
 */

/** Members that are media in base64 alone or as a `data:` URL, or what a vendor encrypted or signed. Some are lists of them. */
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
/** Members that are media where they are a `data:` URL. */
const urlMembers = new Set(['url', 'file_url', 'image_urls']);
const longestMember = 'binary_data_base64'.length;
/** Members of an object whose `data` is in base64, so that its media type may stand behind it. */
const base64Holders = new Set(['inlineData', 'inline_data', 'input_audio']);
/** Types of objects whose `data` is in base64, or was encrypted by a vendor. */
const base64Types = new Set<unknown>(['base64', 'redacted_thinking']);
/** Media whose tokens have nothing to do with their length: a file in another format is its text to a model. */
const lengthlessMedia = /^(?:image|audio|video)\/|^application\/(?:pdf$|msword$|vnd\.)/i;
const dataUrl = /^data:([^;,]*)[^,]*;base64,/i;
/** Bytes of a string that tell what it is. */
const headBytes = 128;
/** Bytes of an object before or behind its medium in which its other members are. */
const siblingBytes = 256;
const bareBase64 = /^[A-Za-z0-9+/_-]+=*$/;
/** Strings of a list that are passed on the way to its name. */
const mostPassed = 16;
/** Bytes of space between what belongs together. */
const mostSpace = 1024;
/** Bytes in which the end of a medium is looked for. */
const longestMedium = 8 * 1024 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;

/** A string that was looked at, which a later one may be in the same list with. */
export interface LookedAt {
  /** Where it begins. */
  readonly quote: number;
  readonly isMedium: boolean;
  /** The list that it is in, by its member; null for none. */
  readonly list: Name | null;
}

/**
 * Looks at the string that begins at a quote: it is a medium, or the like, or a text.
 * @param last that was looked at before, so that no byte is passed twice; null for none
 */
export function lookAt(body: Buffer, quote: number, last: LookedAt | null): LookedAt {
  const { member, isListed } = memberOf(body, quote, last);
  const isMedium = member !== null && isMediaIn(body, member, quote);
  return { quote, isMedium, list: isListed ? member : null };
}

function isMediaIn(body: Buffer, member: Name, quote: number): boolean {
  const { name } = member;
  if (name === 'data') return isMediaData(body, member.quote, quote);
  const head = body.toString('latin1', quote + 1, quote + headBytes).replaceAll('\\/', '/');
  const mediaType = dataUrl.exec(head)?.[1];
  if (mediaType !== undefined)
    return lengthlessMedia.test(mediaType) && (mediaMembers.has(name) || urlMembers.has(name));
  return mediaMembers.has(name) && bareBase64.test(head);
}

interface Place {
  /** The member that a string is the value of, or is in the list of; null where that is not plain. */
  readonly member: Name | null;
  readonly isListed: boolean;
}

const nowhere: Place = { member: null, isListed: false };

function memberOf(body: Buffer, quote: number, last: LookedAt | null): Place {
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
  // Behind a comma outside of a list stands the name of a member.
  else if (passed > 0) return nowhere;
  return { member: body[at] === COLON ? nameBefore(body, at) : null, isListed };
}

interface Name {
  readonly name: string;
  /** Where it begins. */
  readonly quote: number;
}

/** The name of a member before its colon; null for one that is longer than those that matter, or is escaped. */
function nameBefore(body: Buffer, colon: number): Name | null {
  const end = beforeSpace(body, colon);
  if (body[end] !== QUOTE) return null;
  const quote = lastOf(body, QUOTE, Math.max(0, end - longestMember - 1), end);
  if (quote === -1 || body[quote - 1] === BACKSLASH) return null;
  return { name: body.toString('latin1', quote + 1, end), quote };
}

/** @param key where the name `data` begins @param quote where its value begins */
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
  // Where `data` is the first member, and all else is behind more bytes than are looked through.
  if (holder.name === 'source') return membersBefore(body, holder.quote).members.type === 'image';
  return base64Holders.has(holder.name);
}

/** Whether the `data` beside some members is a medium; null where they do not tell. */
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
  /** Where the object begins, -1 where that is not plain. */
  readonly brace: number;
}

function membersBefore(body: Buffer, key: number): MembersBefore {
  const brace = lastOf(body, OPEN_BRACE, Math.max(0, key - siblingBytes), key);
  const end = beforeSpace(body, key);
  if (brace === -1 || (end !== brace && body[end] !== COMMA)) return { members: {}, brace: -1 };
  const members = end === brace ? {} : parseObject(`${body.toString('utf8', brace, end)}}`);
  return { members: members ?? {}, brace: members === null ? -1 : brace };
}

/** The members behind a value, none where its end was not found; null where they are not plain. */
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

/** The last place before another one where no space is; one with a space where there is too much of it, -1 for none. */
function beforeSpace(body: Buffer, from: number): number {
  const end = Math.max(0, from - mostSpace);
  let at = from - 1;
  while (at >= end && isSpace(body[at] as number)) at--;
  return at;
}
