import { decodeDataUrl, hasScheme } from '../../conversation/media-source.js';
import type { MediaPart, MediaSource } from '../../conversation/request.js';
import { invalidValue } from '../../wire/reading.js';

/** The part that a file is: it may be of any type there, and elsewhere an image is another thing than a document. */
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

/** The name of a file whose bytes are sent: without one they are refused, and its ending tells the type. */
export function fileNameOf({ source, name }: MediaPart): string {
  return name ?? (source.kind === 'data' ? spareNames[source.mediaType] : undefined) ?? 'document';
}

/**
 * A document that is a text, as one: chat takes files of PDF alone, and the contents of others as texts
 * (https://developers.openai.com/api/docs/guides/file-inputs).
 * @returns null for one that is none
 */
export function textOfDocument({ source, name }: MediaPart): string | null {
  if (source.kind !== 'data') return null;
  const { mediaType, data } = source;
  if (!mediaType.startsWith('text/') && mediaType !== 'application/json') return null;
  const text = Buffer.from(data, 'base64').toString('utf8');
  return name === null || name === '' ? text : `${name}\n\n${text}`;
}

/** A URL that was taken for base64 has its colon among so many first characters. */
const schemeCharacters = 16;

/**
 * Reads the bytes of a file: a data URL, or base64 alone, as some clients send it. Then its name is all that tells its type.
 * @param at path of the bytes in the client's body
 * @throws {GatewayError} of status 400 for another URL, and for a data URL that is none
 */
export function decodeFileData(data: string, name: string | null, at: string): MediaSource {
  if (hasScheme(data, 'data:')) return decodeDataUrl(data, at);
  if (data.slice(0, schemeCharacters).includes(':')) throw invalidValue(at, 'expected base64 or a data URL');
  const mediaType = name?.toLowerCase().endsWith('.pdf') ? 'application/pdf' : 'application/octet-stream';
  return { kind: 'data', mediaType, data };
}
