import { GatewayError } from '../errors.js';
import { EQUALS } from '../wire/bytes.js';
import { dataUrl, splitDataUrl } from '../wire/data-url.js';
import { declaredImageType, type ImageBytes, type ImageSource, unknownType } from './image.js';

/**
 * Reads an image given as text: an `http(s):` URL, a `data:` URL in base64 (RFC 2397), or bare base64. Its media type is
 * that of the `data:` URL, else it is detected from the first bytes.
 * @param at path of the text in the client's body
 * @throws {GatewayError} of status 400, naming that path, for anything else
 */
export function readImageText(text: string, at: string): ImageSource {
  const trimmed = text.trim();
  const scheme = trimmed.slice(0, 'https://'.length).toLowerCase();
  if (scheme.startsWith('data:')) return readDataUrl(trimmed, at);
  if (scheme.startsWith('http://') || scheme === 'https://') {
    if (!URL.canParse(trimmed)) throw wrongImage(at, 'the URL is not valid');
    return { kind: 'url', url: trimmed, at };
  }
  if (trimmed === '') throw wrongImage(at, 'it is empty');
  const bytes = decodeBase64(trimmed);
  if (bytes === null) throw wrongImage(at, 'it is neither of them');
  return { kind: 'bytes', bytes, mediaType: declaredImageType(null, bytes), filename: null, at };
}

/**
 * JSON of an object with an image as its only member, as a URL or a data URL. It is returned in pieces, since megabytes
 * of base64 in one text would be copied twice more.
 */
export function imageObject(member: string, image: ImageSource): Buffer[] {
  if (image.kind === 'url') return [Buffer.from(JSON.stringify({ [member]: image.url }))];
  const head = JSON.stringify({ [member]: dataUrl(image.mediaType, '') });
  return [
    Buffer.from(head.slice(0, -'"}'.length)),
    Buffer.from(image.bytes.toString('base64'), 'latin1'),
    Buffer.from('"}'),
  ];
}

/**
 * The base64 in a `data:` URL, unchanged.
 * @returns null for any other text
 */
export function base64OfDataUrl(url: string): string | null {
  const parts = splitDataUrl(url);
  return parts?.isBase64 ? parts.data : null;
}

function readDataUrl(url: string, at: string): ImageBytes {
  const parts = splitDataUrl(url);
  if (parts === null) throw wrongImage(at, 'the data URL has no data');
  if (!parts.isBase64) throw wrongImage(at, 'the data URL is not in base64');
  const bytes = decodeBase64(parts.data);
  if (bytes === null) throw wrongImage(at, 'the base64 of the data URL is not valid');
  const mediaType = declaredImageType(parts.mediaType, bytes);
  if (!mediaType.startsWith('image/') && mediaType !== unknownType)
    throw wrongImage(at, 'the data URL holds no image');
  return { kind: 'bytes', bytes, mediaType, filename: null, at };
}

function wrongImage(at: string, problem: string): GatewayError {
  return new GatewayError(
    'invalid_value',
    `Invalid value for '${at}': expected an http(s) URL, a data URL such as 'data:image/png;base64,…' or base64, but ${problem}.`,
    { param: at },
  );
}

const lineEnds = /[\r\n]+/g;

/**
 * Decodes base64 (RFC 4648 sections 4 and 5) with or without padding and with line breaks.
 * @returns the bytes, or null for a text that is not base64, or empty
 */
function decodeBase64(text: string): Buffer | null {
  const bytes = decodeUnbroken(text);
  if (bytes !== null) return bytes;
  const unbroken = text.replace(lineEnds, '');
  return unbroken.length === text.length ? null : decodeUnbroken(unbroken);
}

/**
 * Node's decoder skips characters outside the alphabet. The byte count shows this: each skipped character costs at least
 * one byte.
 */
function decodeUnbroken(text: string): Buffer | null {
  let length = text.length;
  if (text.charCodeAt(length - 1) === EQUALS) length--;
  if (text.charCodeAt(length - 1) === EQUALS) length--;
  if (length === 0 || length % 4 === 1) return null;
  // The decoder may read one byte of a non-ASCII character as a character of the alphabet.
  if (Buffer.byteLength(text, 'utf8') !== text.length) return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === Math.floor((length * 3) / 4) ? bytes : null;
}
