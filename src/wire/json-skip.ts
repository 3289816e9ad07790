import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOT,
  LOWER_E,
  LOWER_U,
  MINUS,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLUS,
  QUOTE,
  ZERO,
} from './bytes.js';
/*
 * Walks the grammar of RFC 8259 over bytes, without creating values. Each function takes the offset where something
 * begins and returns the offset where it ends, or -1 for "not certain". The caller then does a full parse. Whatever
 * these functions accept, `JSON.parse` accepts as well, except within strings longer than `longString` bytes, which the
 * skeleton omits.
 */

/** Maximum levels of nesting in a body. The body itself is the first level. */
export const mostDepth = 64;

/** String values longer than this many bytes are omitted from the skeleton. All constants of schemas are shorter. */
export const longString = 256;

/**
 * Bytes of a string that are checked before the native search for its end begins: most keys and settings are shorter.
 */
const shortText = 64;

/**
 * Bytes checked one by one before the native search takes over. The search costs about 16 iterations of the loop, and
 * then finds the quote 30 times as fast. With a stride of 8, a walk through prose takes 0.6 of the time with 16, since
 * the processor cannot predict the end of a longer loop; a walk through JSON within strings takes 1.07 of it (318 KB,
 * Node 20).
 */
const stride = 8;

/** 1 for bytes that a string contains unescaped. */
const plain = new Uint8Array(256).fill(1, 0x20);
plain[QUOTE] = 0;
plain[BACKSLASH] = 0;

/** 1 for characters that may follow a backslash, except `u`. */
const escapes = new Uint8Array(256);
for (const letter of '"\\/bfnrt') escapes[letter.charCodeAt(0)] = 1;

/** Returns the offset of the first byte from `from` on that is not white space (RFC 8259 section 2), or the length. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  // Most texts have no white space between tokens.
  if ((bytes[from] as number) > 0x20) return from;
  const { length } = bytes;
  let at = from;
  while (at < length && isSpace(bytes[at] as number)) at++;
  return at;
}

export function isSpace(byte: number): boolean {
  return byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}

/** Returns where the JSON of a text begins, after a byte order mark (RFC 8259 section 8.1) and white space. */
export function textStart(bytes: Buffer): number {
  return skipSpace(bytes, bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0);
}

/**
 * Finds the end of a string, whatever it contains.
 * @param from offset of the string's first byte, or of a later byte that is not escaped
 * @returns offset of the closing quote, or -1
 */
export function endOfString(body: Buffer, from: number): number {
  const length = body.length;
  let at = from;
  for (;;) {
    const stop = Math.min(at + stride, length);
    while (at < stop) {
      const byte = body[at] as number;
      if (byte === QUOTE) return at;
      at += byte === BACKSLASH ? 2 : 1;
    }
    if (at >= length) return -1;
    const quote = body.indexOf(QUOTE, at);
    if (quote === -1) return -1;
    // The byte at `at` is not escaped, so the number of backslashes from there on decides.
    let before = quote - 1;
    while (before >= at && body[before] === BACKSLASH) before--;
    if (((quote - 1 - before) & 1) === 0) return quote;
    at = quote + 1;
  }
}

/**
 * Finds the end of a string without escapes, such as a key that is compared byte by byte.
 * @param from offset of the string's first byte
 * @returns offset of the closing quote, or -1, also for a string with a backslash
 */
export function endOfPlain(body: Buffer, from: number): number {
  const length = body.length;
  let at = from;
  while (at < length && plain[body[at] as number] === 1) at++;
  return at < length && body[at] === QUOTE ? at : -1;
}

/**
 * Finds the end of a string value, and checks its content unless it is long.
 * @param from offset of the string's first byte
 * @returns offset of the closing quote, or -1
 */
export function endOfText(body: Buffer, from: number): number {
  const at = textUntil(body, from, Math.min(from + shortText, body.length));
  if (at === -1 || body[at] === QUOTE) return at;
  const end = endOfString(body, at);
  if (end === -1 || end - from > longString) return end;
  return textUntil(body, at, end);
}

/** Walks through valid text, to the closing quote or to the first character at or after `stop`. */
function textUntil(body: Buffer, from: number, stop: number): number {
  const lastFour = stop - 4;
  let at = from;
  while (at < stop) {
    // Four bytes and one branch per iteration take 0.7 of the time of one byte per iteration.
    while (at <= lastFour && isPlain(body, at) === 1) at += 4;
    if (at >= stop) break;
    const byte = body[at] as number;
    if (plain[byte] === 1) {
      at++;
    } else if (byte === BACKSLASH) {
      at = afterEscape(body, at);
      if (at === -1) return -1;
    } else {
      return byte === QUOTE ? at : -1;
    }
  }
  return at < body.length ? at : -1;
}

/** Returns 1 if the four bytes at `at`, all of which are in the body, need no escape. */
function isPlain(body: Buffer, at: number): number {
  const first = plain[body[at] as number] as number;
  const second = plain[body[at + 1] as number] as number;
  const third = plain[body[at + 2] as number] as number;
  return first & second & third & (plain[body[at + 3] as number] as number);
}

function afterEscape(body: Buffer, at: number): number {
  // Beyond the end of the body this is undefined, which matches no letter.
  const letter = body[at + 1] as number;
  if (escapes[letter] === 1) return at + 2;
  if (letter !== LOWER_U) return -1;
  for (let i = at + 2; i < at + 6; i++) {
    const byte = body[i] as number;
    const lower = byte | 0x20;
    if (!(isDigit(byte) || (lower >= 0x61 && lower <= 0x66))) return -1;
  }
  return at + 6;
}

/**
 * Skips a value of any kind.
 * @param at offset of its first byte
 * @param levels maximum levels of nesting
 * @returns offset after its last byte, or -1
 */
export function endOfValue(body: Buffer, at: number, levels: number): number {
  const byte = body[at];
  if (byte === QUOTE) {
    const end = endOfText(body, at + 1);
    return end === -1 ? -1 : end + 1;
  }
  if (byte === OPEN_BRACE) return levels === 0 ? -1 : endOfObject(body, at, levels - 1);
  if (byte === OPEN_BRACKET) return levels === 0 ? -1 : endOfArray(body, at, levels - 1);
  if (byte === MINUS || isDigit(byte)) return endOfNumber(body, at);
  return endOfLiteral(body, at);
}

function endOfObject(body: Buffer, open: number, levels: number): number {
  let at = skipSpace(body, open + 1);
  if (body[at] === CLOSE_BRACE) return at + 1;
  while (at < body.length && body[at] === QUOTE) {
    // A key is never omitted from the skeleton, so it is checked completely.
    const close = textUntil(body, at + 1, body.length);
    if (close === -1) return -1;
    at = afterColon(body, close);
    if (at === -1) return -1;
    at = endOfValue(body, at, levels);
    if (at === -1) return -1;
    at = skipSpace(body, at);
    const byte = body[at];
    if (byte === CLOSE_BRACE) return at + 1;
    if (byte !== COMMA) return -1;
    at = skipSpace(body, at + 1);
  }
  return -1;
}

function endOfArray(body: Buffer, open: number, levels: number): number {
  let at = skipSpace(body, open + 1);
  if (body[at] === CLOSE_BRACKET) return at + 1;
  while (at < body.length) {
    at = endOfValue(body, at, levels);
    if (at === -1) return -1;
    at = skipSpace(body, at);
    const byte = body[at];
    if (byte === CLOSE_BRACKET) return at + 1;
    if (byte !== COMMA) return -1;
    at = skipSpace(body, at + 1);
  }
  return -1;
}

/**
 * Finds the value of a key.
 * @param close offset of the key's closing quote
 * @returns offset of the value's first byte, or -1 without a colon
 */
export function afterColon(body: Buffer, close: number): number {
  let at = close + 1;
  if (body[at] !== COLON) {
    at = skipSpace(body, at);
    if (body[at] !== COLON) return -1;
  }
  return skipSpace(body, at + 1);
}

/** Returns the offset after the number at `from`, or -1. */
export function endOfNumber(body: Buffer, from: number): number {
  let at = body[from] === MINUS ? from + 1 : from;
  if (body[at] === ZERO) at++;
  else at = endOfDigits(body, at);
  if (at !== -1 && body[at] === DOT) at = endOfDigits(body, at + 1);
  if (at === -1 || ((body[at] as number) | 0x20) !== LOWER_E) return at;
  const sign = body[at + 1];
  return endOfDigits(body, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
}

/** Returns the offset after the digits at `from`, or -1 if there are none. */
export function endOfDigits(body: Buffer, from: number): number {
  let at = from;
  while (at < body.length && isDigit(body[at])) at++;
  return at === from ? -1 : at;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** Returns the offset after `true`, `false` or `null`, or -1. */
export function endOfLiteral(body: Buffer, at: number): number {
  switch (body[at]) {
    case 0x74:
      return holds(body, at, 0x72, 0x75, 0x65) ? at + 4 : -1;
    case 0x6e:
      return holds(body, at, 0x75, 0x6c, 0x6c) ? at + 4 : -1;
    case 0x66:
      return holds(body, at + 1, 0x6c, 0x73, 0x65) && body[at + 1] === 0x61 ? at + 5 : -1;
    default:
      return -1;
  }
}

/** Whether the byte at `at` is followed by the three given bytes. */
function holds(body: Buffer, at: number, first: number, second: number, third: number): boolean {
  return body[at + 1] === first && body[at + 2] === second && body[at + 3] === third;
}

/** An object without some of its members. */
interface WithoutMembers {
  /** The remaining members unchanged, in runs of neighbours, with commas between them; empty if there are none. */
  readonly rest: readonly Buffer[];
  /** JSON texts of the removed members, by name. The last one counts if a name occurs several times. */
  readonly taken: ReadonlyMap<string, string>;
}

/**
 * Removes members from a JSON object without parsing or copying the others.
 * @param text a JSON text
 * @returns null if the text is not an object; errors within long strings are not detected
 */
export function withoutMembers(text: Buffer, names: ReadonlySet<string>): WithoutMembers | null {
  let at = skipSpace(text, 0);
  if (text[at] !== OPEN_BRACE) return null;
  at = skipSpace(text, at + 1);
  const rest: Buffer[] = [];
  const taken = new Map<string, string>();
  if (text[at] === CLOSE_BRACE) return isEnd(text, at + 1) ? { rest, taken } : null;
  // Bounds of the run: a view of each of very many members would cost more than everything else.
  let from = at;
  let to = at;
  for (;;) {
    const start = at;
    if (text[at] !== QUOTE) return null;
    const close = endOfString(text, at + 1);
    if (close === -1) return null;
    const value = afterColon(text, close);
    const end = value === -1 ? -1 : endOfValue(text, value, mostDepth);
    if (end === -1) return null;
    const name = nameAt(text, start, close);
    if (name === null) return null;
    const isTaken = names.has(name);
    if (isTaken) {
      taken.set(name, text.toString('utf8', value, end));
      addRun(rest, text, from, to);
    } else to = end;
    at = skipSpace(text, end);
    if (text[at] === CLOSE_BRACE) {
      if (!isTaken) addRun(rest, text, from, to);
      return isEnd(text, at + 1) ? { rest, taken } : null;
    }
    if (text[at] !== COMMA) return null;
    at = skipSpace(text, at + 1);
    if (isTaken) {
      from = at;
      to = at;
    }
  }
}

function addRun(rest: Buffer[], text: Buffer, from: number, to: number): void {
  if (from === to) return;
  if (rest.length > 0) rest.push(comma);
  rest.push(text.subarray(from, to));
}

const comma = Buffer.from(',');
const closeBrace = Buffer.from('}');

/**
 * Builds an object from members.
 * @param first JSON text of the first members, with commas between them
 * @param rest the other members, as returned by `withoutMembers`
 */
export function withMembers(first: string, rest: readonly Buffer[]): Buffer {
  const begin = first === '' || rest.length === 0 ? `{${first}` : `{${first},`;
  return Buffer.concat([Buffer.from(begin), ...rest, closeBrace]);
}

/** A backslash or a control character: a key that contains one is written with escapes, or is invalid. */
const notPlain = /[^ -[\]-\uffff]/;

function nameAt(text: Buffer, start: number, close: number): string | null {
  const name = text.toString('utf8', start + 1, close);
  if (!notPlain.test(name)) return name;
  try {
    return JSON.parse(text.toString('utf8', start, close + 1)) as string;
  } catch {
    return null;
  }
}

function isEnd(text: Buffer, at: number): boolean {
  return skipSpace(text, at) >= text.length;
}

/** Returns the offset of the quote that closes a short string, or the length. Searches byte by byte. */
export function stringEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return bytes.length;
}

/**
 * Returns the offset of the object that is the value of the key at `keyAt`, or -1 if the value is not an object.
 * @param keyLength length of the key including its quotes
 */
export function objectAfterKey(bytes: Buffer, keyAt: number, keyLength: number): number {
  const value = afterColon(bytes, keyAt + keyLength - 1);
  return value !== -1 && bytes[value] === OPEN_BRACE ? value : -1;
}

/** Length of the end that a loop searches: for this, calling and setting up the native search costs more. */
const nearBytes = 2048;

/** Returns the offset of the last `key` in `bytes[0, before)`, or -1. Compares the first and last bytes first. */
function lastKeyAt(bytes: Buffer, key: Buffer, before: number): number {
  const length = key.length;
  const first = key[0];
  const final = key[length - 1];
  const near = Math.max(0, before - nearBytes);
  next: for (let at = before - length; at >= near; at--) {
    if (bytes[at] !== first || bytes[at + length - 1] !== final) continue;
    for (let i = 1; i < length - 1; i++) if (bytes[at + i] !== key[i]) continue next;
    return at;
  }
  return near === 0 ? -1 : bytes.lastIndexOf(key, near);
}

/**
 * Returns the offset of the value of the last `key` (including its quotes) whose value is an object, or -1. Whether the
 * object is closed is not checked.
 */
export function lastObjectStart(bytes: Buffer, key: Buffer): number {
  for (let at = lastKeyAt(bytes, key, bytes.length); at !== -1; at = lastKeyAt(bytes, key, at)) {
    const start = objectAfterKey(bytes, at, key.length);
    if (start !== -1) return start;
  }
  return -1;
}

/** Maximum length of a word that is the value of a key. */
const longestWord = 64;

/**
 * Returns the value of the last `key` (including its quotes) if it is a short string without escapes, or null. For
 * words that a protocol defines, whatever surrounds them.
 */
export function lastWordOf(bytes: Buffer, key: Needle): string | null {
  return contains(bytes, key) ? wordAfter(bytes, bytes.lastIndexOf(key.whole), key.whole.length) : null;
}

/** The same for the last `key` that `lastMemberAt` finds. */
export function lastWordWithin(bytes: Buffer, key: Needle, levels: number): string | null {
  const { whole } = key;
  return contains(bytes, key) ? wordAfter(bytes, lastMemberAt(bytes, whole, levels), whole.length) : null;
}

/**
 * Returns the offset of the last member named `key` (including its quotes) that is nested in at most `levels` objects
 * and lists, or -1. Client data that an answer repeats is nested deeper than the answer's own members.
 * @param bytes text that is complete after the member; its start may be missing
 */
export function lastMemberAt(bytes: Buffer, key: Buffer, levels: number): number {
  let depth = 0;
  let behind = bytes.length;
  for (let at = lastKeyAt(bytes, key, behind); at !== -1; at = lastKeyAt(bytes, key, at)) {
    // Each byte is processed once, however often the key occurs.
    depth += closedWithin(bytes, at, behind);
    behind = at;
    if (depth <= levels && afterColon(bytes, at + key.length - 1) !== -1) return at;
  }
  return -1;
}

/**
 * Returns the offset of the value of the member that `lastMemberAt` finds; -1 without one, or if it is not an object.
 */
export function lastMemberObject(bytes: Buffer, key: Buffer, levels: number): number {
  const at = lastMemberAt(bytes, key, levels);
  return at === -1 ? -1 : objectAfterKey(bytes, at, key.length);
}

/** Returns how many more objects and lists end than begin from `at`, which is not in a string, to `behind`. */
function closedWithin(bytes: Buffer, at: number, behind: number): number {
  let closed = 0;
  for (let i = at; i < behind; i++) {
    const byte = bytes[i];
    if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) closed++;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) closed--;
    else if (byte === QUOTE) i = stringEnd(bytes, i + 1);
  }
  return closed;
}

/** Returns a member's value if it is a short string, else null. @param at offset of its key, or -1 */
export function wordAfter(bytes: Buffer, at: number, keyLength: number): string | null {
  const value = at === -1 ? -1 : afterColon(bytes, at + keyLength - 1);
  if (value === -1 || bytes[value] !== QUOTE) return null;
  const end = endOfPlain(bytes, value + 1);
  return end === -1 || end - value > longestWord ? null : bytes.toString('latin1', value + 1, end);
}

/** Text to search for in bytes that rarely contain it. */
export interface Needle {
  readonly whole: Buffer;
  /**
   * The part to search for. It begins with a character that is rare in JSON, since a search stops at each first byte.
   */
  readonly part: Buffer;
  /** Offset of the part in the whole. */
  readonly partAt: number;
}

/** Classes of characters, from the rarest in texts to the most frequent. */
const rarities = [/[QXZJKVWY]/, /[A-Z]/, /[0-9]/, /[jqxz]/, /[kvwy_-]/, /[bcfgmpu]/, /[^" ]/];
/**
 * Bounds on the length of a part. Shorter ones match too often; for longer ones, the engine's search has a costly
 * set-up.
 */
const leastPart = 4;
const longestPart = 7;
/** Number of false matches of the part after which the whole is searched for. */
const mostVain = 64;

/** @param text at least 4 characters, all of them ASCII */
export function needleOf(text: string): Needle {
  const places = rarities.map((rare) => text.slice(0, 1 - leastPart).search(rare));
  const from = places.find((at) => at !== -1) ?? 0;
  return {
    whole: Buffer.from(text),
    part: Buffer.from(text.slice(from, from + longestPart)),
    partAt: Buffer.byteLength(text.slice(0, from)),
  };
}

/** Whether bytes contain a needle. If not, this takes a third of the time of a search for the whole. */
export function contains(bytes: Buffer, needle: Needle): boolean {
  return needleAt(bytes, needle, 0) !== -1;
}

/** Returns the offset of the next occurrence of a needle, or -1. */
export function needleAt(bytes: Buffer, { whole, part, partAt }: Needle, from: number): number {
  let at = bytes.indexOf(part, from + partAt);
  for (let vain = 0; at !== -1; vain++) {
    const start = at - partAt;
    // A sender who knows the part may repeat it endlessly: then one search for the whole costs less.
    if (vain === mostVain) return bytes.indexOf(whole, start);
    let same = 0;
    while (same < whole.length && bytes[start + same] === whole[same]) same++;
    if (same === whole.length) return start;
    at = bytes.indexOf(part, at + 1);
  }
  return -1;
}

/** Whether bytes contain a text at an offset. Uses a loop: for a short text, a native call costs more. */
export function standsAt(bytes: Buffer, at: number, text: Buffer): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}

/** Returns four bytes as a little-endian number. @param at offset that is followed by at least three bytes */
export function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** Returns what stands before the first list of a JSON text, or before a string with such a bracket; else all of it. */
export function beforeList(json: Buffer): Buffer {
  const list = json.indexOf(OPEN_BRACKET);
  return list === -1 ? json : json.subarray(0, list);
}
