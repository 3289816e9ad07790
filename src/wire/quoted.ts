import { BACKSLASH, QUOTE, SPACE } from './bytes.js';

/** Below this length there is no gain. */
const leastLength = 64;
/** With more words to look at than one for so many characters, `JSON.stringify` is faster. */
const leastDistance = 64;
/** Words that are looked at in any case. */
const usualLooks = 4;

/** Holds a part of the text as Latin-1, in order to search four characters at a time. */
const block = Buffer.from(new ArrayBuffer(16 * 1024));
const words = new Int32Array(block.buffer);

/** The blank, the quotation mark and the backslash in each byte of a word. */
const blanks = 0x20202020;
const quotes = 0x22222222;
const backslashes = 0x5c5c5c5c;
const ones = 0x01010101;
const highest = 0x80808080;

/** How `JSON.stringify` writes the first characters of ASCII. */
const escapes = Array.from({ length: 0x80 }, (_, code) =>
  JSON.stringify(String.fromCharCode(code)).slice(1, -1),
);

/**
 * Returns a text as a JSON string, like `JSON.stringify`. Takes a third of the time for long texts with few escapes
 * (RFC 8259 section 7), such as prose and files in base64. From Node 25 on, `JSON.stringify` is as fast.
 */
export function quoted(text: string): string {
  const { length } = text;
  if (length < leastLength) return JSON.stringify(text);
  let out = '"';
  let from = 0;
  let looks = 0;
  for (let base = 0; base < length; base += block.length) {
    const count = fill(length <= block.length ? text : text.slice(base, base + block.length));
    for (let word = nextToLookAt(0, count); word < count; word = nextToLookAt(word + 1, count)) {
      const first = base + (word << 2);
      looks += 1;
      if (looks > usualLooks && looks * leastDistance > first) return JSON.stringify(text);
      for (let at = first; at < first + 4; at++) {
        const code = text.charCodeAt(at);
        if (code < SPACE || code === QUOTE || code === BACKSLASH) {
          out += text.slice(from, at) + escapes[code];
          from = at + 1;
        }
      }
    }
  }
  // `JSON.stringify` escapes surrogates without their pair.
  if (!text.isWellFormed()) return JSON.stringify(text);
  return from === 0 ? `"${text}"` : `${out}${text.slice(from)}"`;
}

/**
 * Puts a part of a text into the block: the lower byte of each character, which for one that is escaped is all of it.
 * @returns the number of words, of which the last is filled up with blanks
 */
function fill(part: string): number {
  const length = block.write(part, 'latin1');
  const count = (length + 3) >> 2;
  for (let at = length; at < count << 2; at++) block[at] = SPACE;
  return count;
}

/**
 * Returns the next word of the block with a byte below the blank, a quotation mark or a backslash, or `count`.
 * Subtracting sets the highest bit of a byte that is smaller
 * (https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord).
 */
function nextToLookAt(from: number, count: number): number {
  for (let at = from; at < count; at++) {
    const word = words[at] as number;
    const quote = word ^ quotes;
    const backslash = word ^ backslashes;
    const found = ((word - blanks) & ~word) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
    if ((found & highest) !== 0) return at;
  }
  return count;
}
