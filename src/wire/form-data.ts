import { randomBytes } from 'node:crypto';
import { isBoundary } from './multipart-type.js';

/** What a form is written from. */
export interface FormField {
  readonly name: string;
  /** Null or absent for a field that is no file. */
  readonly filename?: string | null;
  /** Of a file, `application/octet-stream` where it is null or absent, as browsers have it. */
  readonly contentType?: string | null;
  readonly data: string | Buffer;
}

interface WrittenForm {
  readonly contentType: string;
  /** In order; their lengths add up to that of the form. */
  readonly body: readonly Buffer[];
}

const escapes: Readonly<Record<string, string>> = {
  '"': '%22',
  '\r': '%0D',
  '\n': '%0A',
  '\0': '%00',
};
/** Of an odd number of backslashes before the closing quote, some parsers take the last for the quote's escape. */
const openEnd = /(?<!\\)(?:\\\\)*\\$/;
const unquoted = /^[\w.'+-]+$/;

/**
 * Writes a form (RFC 7578) in UTF-8, with names escaped as browsers do (the HTML standard, "multipart/form-data encoding
 * algorithm"), and NUL like them. Control characters in content types become spaces.
 * @param parts their data is not copied where it is a buffer
 * @param boundary that occurs in no part, of 1 to 70 of the characters that RFC 2046 allows; by default 128 random bits
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
 * A field that goes before all others of a form.
 * @param firstByte of the form, which begins with its boundary or with the line end before it
 */
export function leadingField(boundary: string, { name, value, firstByte }: LeadingField): Buffer {
  const text = `--${boundary}\r\n${headOf({ name, data: value })}\r\n${value}`;
  return Buffer.from(firstByte === cr ? text : `${text}\r\n`);
}

interface LeadingField {
  readonly name: string;
  readonly value: string;
  readonly firstByte: number | undefined;
}

const cr = 0x0d;

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
  const escaped = name.replaceAll(/["\r\n\0]/g, (character) => escapes[character] as string);
  return openEnd.test(escaped) ? `${escaped}\\` : escaped;
}

function printable(text: string): string {
  return Array.from(text, (character) => (character < ' ' || character === '\x7f' ? ' ' : character)).join(
    '',
  );
}
