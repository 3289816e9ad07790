import type { MediaPart, TextPart } from '../../../conversation/request.js';
import { quoted } from '../../../wire/quoted.js';
import { unsupportedAt } from '../../unsupported.js';

/** Names of the sound formats that the protocol knows, by their media types. */
const audioFormats: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/wave': 'wav',
  'audio/vnd.wave': 'wav',
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
};

/** The protocol wants a name beside a file's data; the ending tells some upstreams the type. */
const spareNames: Readonly<Record<string, string>> = {
  'application/pdf': 'document.pdf',
  'text/plain': 'document.txt',
};

/**
 * Writes the JSON text of the content of a user's message: a string for a single text, else an array of parts.
 * @throws {GatewayError} of status 400 for media that the protocol has no part for
 */
export function encodeUserContent(parts: readonly (TextPart | MediaPart)[]): string {
  const [first] = parts;
  if (parts.length === 1 && first?.kind === 'text') return quoted(first.text);
  const texts = parts.map((part) =>
    part.kind === 'text' ? `{"type":"text","text":${quoted(part.text)}}` : mediaPart(part),
  );
  return `[${texts.join(',')}]`;
}

function mediaPart(part: MediaPart): string {
  const { kind, source, at } = part;
  if (kind === 'image') {
    const url = source.kind === 'url' ? source.url : dataUrl(source.mediaType, source.data);
    const detail = part.detail === null ? '' : `,"detail":${JSON.stringify(part.detail)}`;
    return `{"type":"image_url","image_url":{"url":${quoted(url)}${detail}}}`;
  }
  if (kind === 'video') throw unsupportedAt(at, 'chat', '(a video)');
  if (source.kind === 'url')
    throw unsupportedAt(at, 'chat', `(${kind === 'audio' ? 'audio' : 'a document'} by URL)`);
  if (kind === 'document') {
    const filename = part.name ?? spareNames[source.mediaType] ?? 'document';
    const data = quoted(dataUrl(source.mediaType, source.data));
    return `{"type":"file","file":{"filename":${JSON.stringify(filename)},"file_data":${data}}}`;
  }
  const format = audioFormats[source.mediaType];
  if (format === undefined) throw unsupportedAt(at, 'chat', `of type '${source.mediaType}'`);
  return `{"type":"input_audio","input_audio":{"data":${quoted(source.data)},"format":"${format}"}}`;
}

function dataUrl(mediaType: string, data: string): string {
  return `data:${mediaType};base64,${data}`;
}
