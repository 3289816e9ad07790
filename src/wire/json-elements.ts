import { endOfValue, mostDepth, skipSpace } from './json-skip.js';

const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * Splits a JSON array without parsing its elements.
 * @param text a JSON text
 * @returns the JSON texts of its elements, or null if it is not an array; errors within long strings are not detected
 */
export function elementsOf(text: Buffer): string[] | null {
  let at = skipSpace(text, 0);
  if (text[at] !== OPEN_BRACKET) return null;
  at = skipSpace(text, at + 1);
  const elements: string[] = [];
  if (text[at] === CLOSE_BRACKET) return skipSpace(text, at + 1) >= text.length ? elements : null;
  for (;;) {
    const end = endOfValue(text, at, mostDepth);
    if (end === -1) return null;
    elements.push(text.toString('utf8', at, end));
    at = skipSpace(text, end);
    if (text[at] === CLOSE_BRACKET) return skipSpace(text, at + 1) >= text.length ? elements : null;
    if (text[at] !== COMMA) return null;
    at = skipSpace(text, at + 1);
  }
}
