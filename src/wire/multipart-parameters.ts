import { isToken } from './head.js';

/** Parameters of a header value in a form: of a content type, or of a content disposition. */

/** The name is lower-case; of a quoted value, what stands between the quotes, its escapes undone. */
export interface Parameter {
  readonly name: string;
  readonly value: string;
}

/**
 * Reads `; name=value; name="value"` (RFC 2045 section 5.1, RFC 2183 section 2). In quotes a backslash escapes a quote
 * or a backslash and is itself before anything else: browsers do not escape it. An unquoted value reaches up to the
 * next semicolon, since some clients leave out the quotes that theirs would need; but quotes and angle brackets, which
 * some readers take off, are malformed there.
 * @param from where the first semicolon stands, or the white space before it
 * @returns the parameters in their order, or null for a value that is malformed
 */
export function readParameters(text: string, from: number): readonly Parameter[] | null {
  const parameters: Parameter[] = [];
  for (let at = skipBlanks(text, from); at < text.length; at = skipBlanks(text, at)) {
    if (text[at] !== ';') return null;
    at = skipBlanks(text, at + 1);
    if (at === text.length || text[at] === ';') continue;
    const equals = text.indexOf('=', at);
    const name = text.slice(at, Math.max(at, equals)).trimEnd().toLowerCase();
    if (!isToken(name)) return null;
    at = skipBlanks(text, equals + 1);
    const found = text[at] === '"' ? readQuoted(text, at + 1) : readPlain(text, at);
    if (found === null) return null;
    parameters.push({ name, value: found.value });
    at = found.end;
  }
  return parameters;
}

interface Value {
  readonly value: string;
  /** Offset of what follows it. */
  readonly end: number;
}

function readPlain(text: string, from: number): Value | null {
  const semicolon = text.indexOf(';', from);
  const end = semicolon === -1 ? text.length : semicolon;
  const value = text.slice(from, end).trimEnd();
  return /["<>]/.test(value) ? null : { value, end };
}

/** @param from offset behind the opening quote */
function readQuoted(text: string, from: number): Value | null {
  let value = '';
  let kept = from;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '"') return { value: value + text.slice(kept, at), end: at + 1 };
    if (text[at] !== '\\') continue;
    const next = text[at + 1];
    // The name that a browser sent may end with a backslash: then this is the closing quote.
    const closes = next === '"' && !text.includes('"', at + 2);
    if (closes || (next !== '"' && next !== '\\')) continue;
    value += text.slice(kept, at);
    at++;
    kept = at;
  }
  return null;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t') at++;
  return at;
}
