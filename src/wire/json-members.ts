import { defaultScanLimits, endOfString } from './json-scan.js';
import { afterColon, endOfValue } from './json-skip.js';
import { skipSpace } from './json-space.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** An object without some of its members. */
export interface WithoutMembers {
  /** The members that are left, as they came, with the commas between them; empty when there are none. */
  readonly rest: readonly Buffer[];
  /** The JSON texts of those that were taken out, by name; of several with one name the last. */
  readonly taken: ReadonlyMap<string, string>;
}

/**
 * Takes members out of a JSON object without parsing or copying the others.
 * @param text a JSON text
 * @returns null when the text is no object; faults inside long strings are not looked for
 */
export function withoutMembers(text: Buffer, names: ReadonlySet<string>): WithoutMembers | null {
  let at = skipSpace(text, 0);
  if (text[at] !== OPEN_BRACE) return null;
  at = skipSpace(text, at + 1);
  const rest: Buffer[] = [];
  const taken = new Map<string, string>();
  if (text[at] === CLOSE_BRACE) return isEnd(text, at + 1) ? { rest, taken } : null;
  for (;;) {
    const start = at;
    if (text[at] !== QUOTE) return null;
    const close = endOfString(text, at + 1);
    if (close === -1) return null;
    const value = afterColon(text, close);
    const end = value === -1 ? -1 : endOfValue(text, value, defaultScanLimits.maxDepth);
    if (end === -1) return null;
    const name = nameAt(text, start, close);
    if (name === null) return null;
    if (names.has(name)) taken.set(name, text.toString('utf8', value, end));
    else {
      if (rest.length > 0) rest.push(comma);
      rest.push(text.subarray(start, end));
    }
    at = skipSpace(text, end);
    if (text[at] === CLOSE_BRACE) return isEnd(text, at + 1) ? { rest, taken } : null;
    if (text[at] !== COMMA) return null;
    at = skipSpace(text, at + 1);
  }
}

const comma = Buffer.from(',');

/** A key may be spelled with escapes. */
function nameAt(text: Buffer, start: number, close: number): string | null {
  try {
    return JSON.parse(text.toString('utf8', start, close + 1)) as string;
  } catch {
    return null;
  }
}

function isEnd(text: Buffer, at: number): boolean {
  return skipSpace(text, at) >= text.length;
}
