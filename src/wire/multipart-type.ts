import { GatewayError } from '../errors.js';
import { isToken } from './head.js';

const formType = /^\s*multipart\/form-data\s*(?=;|$)/i;
/** RFC 2046 section 5.1.1: 1 to 70 of these characters, the last of them no space. */
const validBoundary = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;
/** So much of a foreign content type is told. */
const shownType = 80;

/** True for a content type that says `multipart/form-data`, whatever its parameters. */
export function isMultipart(contentType: string): boolean {
  return formType.test(contentType);
}

/** True for a text that may be a boundary. */
export function isBoundary(text: string): boolean {
  return validBoundary.test(text);
}

/**
 * Reads the boundary of a form out of its content type (RFC 7578 section 4.1).
 * @returns the boundary, without the dashes that stand before it in the form
 * @throws {GatewayError} `unsupported_media_type` for another content type, `invalid_request` for one without a
 * boundary, with two, or with one that is not of 1 to 70 of the characters that a boundary may have
 */
export function boundaryOf(contentType: string): string {
  const type = formType.exec(contentType);
  if (type === null) {
    const found = contentType.trim().slice(0, shownType);
    throw new GatewayError(
      'unsupported_media_type',
      `This endpoint takes a form: expected the content type 'multipart/form-data', found ${
        found === '' ? 'none' : `'${found}'`
      }.`,
    );
  }
  const parameters = readParameters(contentType, type[0].length);
  if (parameters === null) throw refused('is malformed behind multipart/form-data');
  const [boundary, second] = parameters.filter(({ name }) => name === 'boundary');
  if (boundary === undefined)
    throw refused(
      "has no boundary: expected 'multipart/form-data; boundary=…', which HTTP clients write themselves",
    );
  // Parsers differ on which of them counts.
  if (second !== undefined) throw refused('has two boundaries');
  if (!isBoundary(boundary.value))
    throw refused(
      "has a boundary that is none: expected 1 to 70 letters, digits, spaces or '()+_,-./:=?, no space at the end",
    );
  return boundary.value;
}

function refused(what: string): GatewayError {
  return new GatewayError('invalid_request', `The content type of the form ${what}.`);
}

/**
 * A parameter of a content type, or of a content disposition in a form. The name is lower-case; of a quoted value, what
 * stands between the quotes, its escapes undone.
 */
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
