import { GatewayError } from '../errors.js';
import { isToken } from './head.js';

const formType = /^\s*multipart\/form-data\s*(?=;|$)/i;
/** RFC 2046 section 5.1.1: 1 to 70 of these characters, the last of which is not a space. */
const validBoundary = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;
/** Maximum length of a content type in messages. */
const shownType = 80;

/** Whether a content type is `multipart/form-data`, with any parameters. */
export function isMultipart(contentType: string): boolean {
  return formType.test(contentType);
}

/** Whether a text is a valid boundary. */
export function isBoundary(text: string): boolean {
  return validBoundary.test(text);
}

/**
 * Reads the boundary of a form from its content type (RFC 7578 section 4.1).
 * @returns the boundary, without the dashes that precede it in the form
 * @throws {GatewayError} `unsupported_media_type` for another content type; `invalid_request` for one with no boundary,
 *   two boundaries or an invalid one
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
  // Parsers differ on which one counts.
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
 * A parameter of a content type, or of a content disposition in a form. The name is lower-case. A quoted value is
 * without its quotes and escapes.
 */
export interface Parameter {
  readonly name: string;
  readonly value: string;
}

/**
 * Parses `; name=value; name="value"` (RFC 2045 section 5.1, RFC 2183 section 2). Within quotes, a backslash escapes a
 * quote or a backslash, and stands for itself before anything else, since browsers do not escape it. An unquoted value
 * extends to the next semicolon, since some clients omit quotes that their values need. Quotes and angle brackets,
 * which some readers strip, are malformed in an unquoted value.
 * @param from offset of the first semicolon, or of the white space before it
 * @returns the parameters in order, or null for a malformed value
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
  /** Offset after the value. */
  readonly end: number;
}

function readPlain(text: string, from: number): Value | null {
  const semicolon = text.indexOf(';', from);
  const end = semicolon === -1 ? text.length : semicolon;
  const value = text.slice(from, end).trimEnd();
  return /["<>]/.test(value) ? null : { value, end };
}

/** @param from offset after the opening quote */
function readQuoted(text: string, from: number): Value | null {
  let value = '';
  let kept = from;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '"') return { value: value + text.slice(kept, at), end: at + 1 };
    if (text[at] !== '\\') continue;
    const next = text[at + 1];
    // A name from a browser may end with a backslash, in which case this is the closing quote.
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
