import { randomBytes } from 'node:crypto';
import { CR } from './bytes.js';
import { isBoundary } from './multipart-type.js';

/** A field or file of a form to write. */
export interface FormField {
  readonly name: string;
  /** Null or absent for a field that is not a file. */
  readonly filename?: string | null;
  /** Default for files: `application/octet-stream`, as in browsers. */
  readonly contentType?: string | null;
  readonly data: string | Buffer;
}

interface WrittenForm {
  readonly contentType: string;
  /** The pieces of the form in order. */
  readonly body: readonly Buffer[];
}

const escapes: Readonly<Record<string, string>> = {
  '"': '%22',
  '\r': '%0D',
  '\n': '%0A',
  '\0': '%00',
};
/** An odd number of backslashes before the closing quote: some parsers treat the last one as an escape of the quote. */
const openEnd = /(?<!\\)(?:\\\\)*\\$/;
const unquoted = /^[\w.'+-]+$/;

/**
 * Writes a form (RFC 7578) in UTF-8. Names are escaped as in browsers (the HTML standard, "multipart/form-data encoding
 * algorithm"), and NUL is escaped likewise. Control characters in content types become spaces.
 * @param parts data in buffers is not copied
 * @param boundary must not occur in a part; 1 to 70 of the characters that RFC 2046 allows. Default: 128 random bits
 */
export function writeForm(parts: readonly FormField[], boundary: string = randomBoundary()): WrittenForm {
  if (!isBoundary(boundary)) throw new Error(`no boundary of a form: ${boundary}`);
  const body: Buffer[] = [];
  let text = '';
  for (const part of parts) {
    text += `--${boundary}\r\n${headOf(part)}\r\n`;
    if (typeof part.data === 'string') {
      text += part.data;
    } else {
      body.push(Buffer.from(text), part.data);
      text = '';
    }
    text += '\r\n';
  }
  body.push(Buffer.from(`${text}--${boundary}--\r\n`));
  const value = unquoted.test(boundary) ? boundary : `"${boundary}"`;
  return { contentType: `multipart/form-data; boundary=${value}`, body };
}

/**
 * Writes a field to be placed before all others of a form.
 * @param firstByte first byte of the form, which begins with its boundary or with the line end before it
 */
export function leadingField(boundary: string, { name, value, firstByte }: LeadingField): Buffer {
  const text = `--${boundary}\r\n${headOf({ name, data: value })}\r\n${value}`;
  return Buffer.from(firstByte === CR ? text : `${text}\r\n`);
}

interface LeadingField {
  readonly name: string;
  readonly value: string;
  readonly firstByte: number | undefined;
}

function randomBoundary(): string {
  return `----form-${randomBytes(16).toString('hex')}`;
}

function headOf({ name, filename = null, contentType = null }: FormField): string {
  const disposition = `Content-Disposition: form-data; name="${escapeName(name)}"`;
  const type = contentType ?? (filename === null ? null : 'application/octet-stream');
  return (
    disposition +
    (filename === null ? '\r\n' : `; filename="${escapeName(filename)}"\r\n`) +
    (type === null ? '' : `Content-Type: ${printable(type)}\r\n`)
  );
}

function escapeName(name: string): string {
  const escaped = name.replaceAll(/["\r\n\0]/g, (character) => escapes[character] ?? character);
  return openEnd.test(escaped) ? `${escaped}\\` : escaped;
}

function printable(text: string): string {
  return Array.from(text, (character) => (character < ' ' || character === '\x7f' ? ' ' : character)).join(
    '',
  );
}
