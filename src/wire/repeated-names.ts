import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './bytes.js';
import { parseJson } from './json.js';
import { afterColon, endOfString, endOfValue, mostDepth, skipSpace } from './json-skip.js';

/**
 * Whether an object anywhere in a JSON text has a name twice: parsers differ on which one counts.
 * @param body valid JSON
 * @returns true also if that is not certain
 */
export function hasRepeatedNames(body: Buffer): boolean {
  return endWithoutRepeats(body, skipSpace(body, 0), mostDepth) === -1;
}

/** Returns the offset after a value in which no object has a name twice, or -1. */
function endWithoutRepeats(body: Buffer, at: number, levels: number): number {
  const isObject = body[at] === OPEN_BRACE;
  if (!isObject && body[at] !== OPEN_BRACKET) return endOfValue(body, at, levels);
  if (levels === 0) return -1;
  const close = isObject ? CLOSE_BRACE : CLOSE_BRACKET;
  const names = new Set<string>();
  let from = skipSpace(body, at + 1);
  if (body[from] === close) return from + 1;
  for (;;) {
    const value = isObject ? afterNewName(body, from, names) : from;
    const end = value === -1 ? -1 : endWithoutRepeats(body, value, levels - 1);
    if (end === -1) return -1;
    const next = skipSpace(body, end);
    if (body[next] === close) return next + 1;
    if (body[next] !== COMMA) return -1;
    from = skipSpace(body, next + 1);
  }
}

/** Returns the offset of a member's value, or -1 if its name is among those before it. */
function afterNewName(body: Buffer, start: number, names: Set<string>): number {
  const close = body[start] === QUOTE ? endOfString(body, start + 1) : -1;
  const name = close === -1 ? null : parseJson(body.toString('utf8', start, close + 1));
  if (typeof name !== 'string' || names.has(name)) return -1;
  names.add(name);
  return afterColon(body, close);
}
