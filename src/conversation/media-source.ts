import { dataUrl, splitDataUrl } from '../wire/data-url.js';
import { wrongValue } from '../wire/reading.js';
import type { MediaSource } from './request.js';

/** What clients call JPEG against the registry of media types; other vendors take the registered name alone. */
const misnamed = 'image/jpg';
const unknownType = 'application/octet-stream';

/**
 * Reads where a medium is: a `data:` URL in base64 (RFC 2397) or an `http(s):` URL.
 * @param at path of the URL in the client's body
 * @throws {GatewayError} of status 400 for anything else
 */
export function decodeMediaUrl(url: string, at: string): MediaSource {
  if (hasScheme(url, 'data:')) return decodeDataUrl(url, at);
  if (isHttpUrl(url)) return { kind: 'url', url, mediaType: null };
  throw wrongValue(at, "an http(s) URL or a data URL such as 'data:image/png;base64,…'");
}

/**
 * Reads a `data:` URL. Its base64 is not decoded: a mistake in it is for the upstream to find.
 * @param at path of the URL in the client's body
 * @throws {GatewayError} of status 400 for a URL that has no data or is not in base64
 */
export function decodeDataUrl(url: string, at: string): MediaSource {
  const parts = splitDataUrl(url);
  if (parts === null || !parts.isBase64 || parts.data === '')
    throw wrongValue(at, "a data URL in base64 such as 'data:image/png;base64,…'");
  return { kind: 'data', mediaType: registeredType(parts.mediaType), data: parts.data };
}

/** Where a medium is, or its bytes as a `data:` URL. */
export function urlOfMedia(source: MediaSource): string {
  return source.kind === 'url' ? source.url : dataUrl(source.mediaType, source.data);
}

/** True for an `http:` or `https:` URL with a host, as far as its beginning says. */
export function isHttpUrl(url: string): boolean {
  return hasScheme(url, 'https://') || hasScheme(url, 'http://');
}

/** True when the URL has this scheme, given in lower-case and with its colon and perhaps what follows. */
export function hasScheme(url: string, scheme: string): boolean {
  return url.slice(0, scheme.length).toLowerCase() === scheme;
}

/** A media type as the registry has it: lower-case, and `application/octet-stream` for an empty one. */
export function registeredType(mediaType: string): string {
  const lower = mediaType.trim().toLowerCase();
  if (lower === '') return unknownType;
  return lower === misnamed ? 'image/jpeg' : lower;
}

/**
 * Base64 in the standard alphabet and with its padding. It may be in that of URLs (RFC 4648, section 5), which readers of
 * protocol buffers take as well (https://protobuf.dev/programming-guides/json/) and those of other vendors do not.
 */
export function standardBase64(data: string): string {
  const isOfUrls = data.includes('-') || data.includes('_');
  const standard = isOfUrls ? data.replaceAll('-', '+').replaceAll('_', '/') : data;
  const over = standard.length % 4;
  // What is in lines has its padding, and its length says nothing.
  return over < 2 || standard.includes('\n') ? standard : standard.padEnd(standard.length + 4 - over, '=');
}
