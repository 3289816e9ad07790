import type { MediaPart, MediaSource } from '../../../conversation/request.js';
import { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { untranslatable } from '../../unsupported.js';
import { keyOf, memberOf } from '../spelling.js';

/** Kinds by the ending of a URL's path, for files whose type the client left out. */
const kindsByEnding: Readonly<Record<string, MediaPart['kind']>> = {
  png: 'image',
  jpg: 'image',
  jpeg: 'image',
  gif: 'image',
  webp: 'image',
  wav: 'audio',
  mp3: 'audio',
  mp4: 'video',
};

/** The 400 for a value that the schema lets through and that means nothing. */
export function wrongValue(at: string, wanted: string): GatewayError {
  return new GatewayError('invalid_value', `'${at}' must be ${wanted}.`, { param: at });
}

/**
 * Reads the `inlineData` or `fileData` of a part.
 * @param at path of the part in the client's body
 * @returns null for a part that has neither
 * @throws {GatewayError} of status 400 for data without a type, and for files that the vendor keeps
 */
export function decodeMedia(part: JsonObject, at: string): MediaPart | null {
  const inline = memberOf(part, 'inlineData');
  if (isObject(inline)) return inlineMedia(inline, `${at}.${keyOf(part, 'inlineData')}`);
  const file = memberOf(part, 'fileData');
  return isObject(file) ? fileMedia(file, `${at}.${keyOf(part, 'fileData')}`) : null;
}

function inlineMedia(blob: JsonObject, at: string): MediaPart {
  const mediaType = mediaTypeOf(blob);
  if (mediaType === null) throw wrongValue(`${at}.mimeType`, "a media type such as 'image/png'");
  if (typeof blob.data !== 'string') throw wrongValue(`${at}.data`, 'a string in base64');
  const source: MediaSource = { kind: 'data', mediaType, data: blob.data };
  return { kind: kindOfType(mediaType), source, detail: null, name: nameOf(blob), at };
}

function fileMedia(file: JsonObject, at: string): MediaPart {
  const url = textOrNull(memberOf(file, 'fileUri'));
  const urlAt = `${at}.${keyOf(file, 'fileUri')}`;
  if (url === null) throw wrongValue(urlAt, 'a URL');
  if (!isPublic(url)) throw untranslatable(urlAt, '(a file that is kept by the vendor)');
  const mediaType = mediaTypeOf(file);
  const kind = mediaType === null ? kindOfUrl(url) : kindOfType(mediaType);
  return { kind, source: { kind: 'url', url, mediaType }, detail: null, name: nameOf(file), at };
}

/** The vendor's stores are `gs://` and its files API, which needs the client's own key. */
function isPublic(url: string): boolean {
  return /^https?:\/\//i.test(url) && !/^https?:\/\/[\w.-]*\.googleapis\.com\/v1\w*\/files\//i.test(url);
}

function mediaTypeOf(blob: JsonObject): string | null {
  const mediaType = textOrNull(memberOf(blob, 'mimeType'))?.trim().toLowerCase() ?? '';
  // What clients call JPEG against the registry of media types; other vendors take the registered name alone.
  if (mediaType === 'image/jpg') return 'image/jpeg';
  return mediaType === '' ? null : mediaType;
}

function kindOfType(mediaType: string): MediaPart['kind'] {
  const family = mediaType.slice(0, mediaType.indexOf('/'));
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}

function kindOfUrl(url: string): MediaPart['kind'] {
  if (/^https?:\/\/(?:www\.|m\.)?(?:youtube\.com|youtu\.be)\//i.test(url)) return 'video';
  const [path = ''] = url.split(/[?#]/, 1);
  return kindsByEnding[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? 'document';
}

function nameOf(blob: JsonObject): string | null {
  return textOrNull(memberOf(blob, 'displayName')) || null;
}
