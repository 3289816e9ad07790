import { decodeDataUrl, hasScheme } from '../../conversation/media-source.js';
import type { MediaPart, MediaSource } from '../../conversation/request.js';
import { invalidValue } from '../../wire/json.js';

/** Returns the part for a file. The file may be of any type, and other protocols distinguish images from documents. */
export function filePartOf(source: MediaSource, name: string | null, at: string): MediaPart {
  const isImage = source.kind === 'data' && source.mediaType.startsWith('image/');
  return isImage
    ? { kind: 'image', source, detail: null, name: null, at }
    : { kind: 'document', source, detail: null, name, at };
}

const spareNames: Readonly<Record<string, string>> = {
  'application/pdf': 'document.pdf',
  'application/json': 'document.json',
  'text/plain': 'document.txt',
  'text/markdown': 'document.md',
  'text/csv': 'document.csv',
  'text/html': 'document.html',
};

/**
 * Returns the name of a file that is sent as bytes. Upstreams refuse such a file without a name, and its extension
 * indicates the type.
 */
export function fileNameOf({ source, name }: MediaPart): string {
  return name ?? (source.kind === 'data' ? spareNames[source.mediaType] : undefined) ?? 'document';
}

/**
 * Converts a document of text to a text: chat takes only PDF files, and the contents of others as texts
 * (https://developers.openai.com/api/docs/guides/file-inputs).
 * @returns null for any other document
 */
export function textOfDocument({ source, name }: MediaPart): string | null {
  if (source.kind !== 'data') return null;
  const { mediaType, data } = source;
  if (!mediaType.startsWith('text/') && mediaType !== 'application/json') return null;
  const text = Buffer.from(data, 'base64').toString('utf8');
  return name === null || name === '' ? text : `${name}\n\n${text}`;
}

/** Characters in which the colon of a URL is looked for: a URL may have been sent as base64. */
const schemeCharacters = 16;

/**
 * Reads the bytes of a file: a data URL, or base64 alone, which some clients send. In that case only its name indicates
 * the type.
 * @param at path of the bytes in the client's body
 * @throws {GatewayError} of status 400 for another URL, and for a malformed data URL
 */
export function decodeFileData(data: string, name: string | null, at: string): MediaSource {
  if (hasScheme(data, 'data:')) return decodeDataUrl(data, at);
  if (data.slice(0, schemeCharacters).includes(':')) throw invalidValue(at, 'expected base64 or a data URL');
  const mediaType = name?.toLowerCase().endsWith('.pdf') ? 'application/pdf' : 'application/octet-stream';
  return { kind: 'data', mediaType, data };
}
