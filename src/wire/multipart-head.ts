import { GatewayError } from '../errors.js';
import { textBytes } from './head.js';
import { isToken } from './head-lines.js';
import { type Parameter, readParameters } from './multipart-parameters.js';

/** What stands before the content of a part. */
export interface PartHead {
  readonly name: string;
  /** Null for a part that is no file. Browsers send an empty one where no file was chosen. */
  readonly filename: string | null;
  readonly contentType: string | null;
}

const cr = 0x0d;
const lf = 0x0a;
const replacement = '\ufffd';
/** How browsers write what would end a quoted name (the HTML standard, "multipart/form-data encoding algorithm"). */
const browserEscapes: Readonly<Record<string, string>> = { '%22': '"', '%0D': '\r', '%0A': '\n' };
const extendedText = /^utf-8'[^']*'(.*)$/i;
/** Codings of a part's content that change none of its bytes (RFC 2045 section 6.2). */
const identities = ['7bit', '8bit', 'binary'];

/**
 * Reads the head of a part (RFC 7578 section 4.2).
 * @param head whole lines, each with its CRLF, without the empty one behind them
 * @param number of the part, from 1, for messages
 * @throws {GatewayError} of status 400 for a head that parsers could read differently, or that has no name
 */
export function readPartHead(head: Buffer, number: number): PartHead {
  for (const byte of head) {
    if (textBytes[byte] === 0 && byte !== cr && byte !== lf)
      throw refused(number, 'has a control character in its head');
  }
  const fields = new Map<string, string>();
  for (const line of head.toString('utf8').split('\r\n').slice(0, -1)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!isToken(name) || line.includes('\r'))
      throw refused(
        number,
        "has a line in its head that is no 'name: value', or that continues the one before",
      );
    if (fields.has(name)) throw refused(number, `has more than one '${name.slice(0, 64)}' in its head`);
    fields.set(name, line.slice(colon + 1).trim());
  }
  const coding = fields.get('content-transfer-encoding')?.toLowerCase();
  if (coding !== undefined && !identities.includes(coding))
    throw refused(
      number,
      'has a content-transfer-encoding: send its content as it is (RFC 7578 section 4.7)',
    );
  const disposition = readDisposition(fields.get('content-disposition') ?? '', number);
  return { ...disposition, contentType: fields.get('content-type') || null };
}

function readDisposition(value: string, number: number): { name: string; filename: string | null } {
  const type = /^form-data(?=\s*(;|$))/i.exec(value);
  const parameters = type === null ? null : readParameters(value, type[0].length);
  if (parameters === null)
    throw refused(number, `has no valid head: expected 'content-disposition: form-data; name="…"'`);
  const split = parameters.find((each) => each.name.includes('*') && each.name !== 'filename*');
  if (split !== undefined)
    throw refused(
      number,
      `has a parameter '${split.name.slice(0, 64)}' in its content-disposition: send names plain, in UTF-8 (RFC 7578 section 4.2)`,
    );
  const name = unescaped(only(parameters, 'name', number) ?? '');
  if (name === '') throw refused(number, 'has no name');
  if (hasControls(name) || name.includes(replacement))
    throw refused(number, 'has a control character, or what is not UTF-8, in its name');
  const plain = only(parameters, 'filename', number);
  const extended = only(parameters, 'filename*', number);
  const filename = extended === null ? plain && unescaped(plain) : decodeExtended(extended, number);
  // A file's name may have line ends in it, which come escaped.
  if (filename !== null && hasControls(filename.replaceAll(/[\r\n]/g, '')))
    throw refused(number, 'has a control character in its filename');
  return { name, filename };
}

/** The value of a parameter, or null. Parsers differ on which of two counts. */
function only(parameters: readonly Parameter[], wanted: string, number: number): string | null {
  const [first, second] = parameters.filter(({ name }) => name === wanted);
  if (second !== undefined) throw refused(number, `has more than one '${wanted}'`);
  return first?.value ?? null;
}

function unescaped(text: string): string {
  return text.includes('%')
    ? text.replaceAll(/%(?:22|0D|0A)/gi, (code) => browserEscapes[code.toUpperCase()] ?? code)
    : text;
}

/** Reads `UTF-8''na%C3%AFve.txt` (RFC 8187 section 3.2). */
function decodeExtended(value: string, number: number): string {
  const found = extendedText.exec(value);
  try {
    if (found !== null) return decodeURIComponent(found[1] as string);
  } catch {
    // Refused below, as what has no charset is.
  }
  throw refused(number, "has a malformed 'filename*': expected UTF-8''… in percent-encoding");
}

function hasControls(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

function refused(number: number, what: string): GatewayError {
  return new GatewayError('invalid_request', `Part ${number} of the form ${what}.`);
}
