import { dataUrl, splitDataUrl } from '../wire/data-url.js';
import { wrongValue } from '../wire/json.js';
import type { MediaSource } from './request.js';

/** An unregistered name for JPEG that clients use. Some vendors accept only the registered one. */
const misnamed = 'image/jpg';
const unknownType = 'application/octet-stream';

/**
 * Reads the source of a media file: a base64 `data:` URL (RFC 2397) or an `http(s):` URL.
 * @param at path of the URL in the client's body
 * @throws {GatewayError} with status 400 for anything else
 */
export function decodeMediaUrl(url: string, at: string): MediaSource {
  if (hasScheme(url, 'data:')) return decodeDataUrl(url, at);
  if (isHttpUrl(url)) return { kind: 'url', url, mediaType: null };
  throw wrongValue(at, "an http(s) URL or a data URL such as 'data:image/png;base64,…'");
}

/**
 * Reads a `data:` URL. Its base64 is not decoded: the upstream finds errors in it.
 * @param at path of the URL in the client's body
 * @throws {GatewayError} with status 400 if the URL has no data or is not in base64
 */
export function decodeDataUrl(url: string, at: string): MediaSource {
  const parts = splitDataUrl(url);
  if (parts === null || !parts.isBase64 || parts.data === '')
    throw wrongValue(at, "a data URL in base64 such as 'data:image/png;base64,…'");
  return { kind: 'data', mediaType: registeredType(parts.mediaType), data: parts.data };
}

/** Returns the URL of a media file, or its bytes as a `data:` URL. */
export function urlOfMedia(source: MediaSource): string {
  return source.kind === 'url' ? source.url : dataUrl(source.mediaType, source.data);
}

/** Returns whether a URL begins with `http://` or `https://`. */
export function isHttpUrl(url: string): boolean {
  return hasScheme(url, 'https://') || hasScheme(url, 'http://');
}

/**
 * Returns whether a URL begins with a scheme.
 * @param scheme lower case, including the colon and optionally what follows
 */
export function hasScheme(url: string, scheme: string): boolean {
  return url.slice(0, scheme.length).toLowerCase() === scheme;
}

/** Returns the registered name of a media type, in lower case. `application/octet-stream` for an empty one. */
export function registeredType(mediaType: string): string {
  const lower = mediaType.trim().toLowerCase();
  if (lower === '') return unknownType;
  return lower === misnamed ? 'image/jpeg' : lower;
}

/**
 * Converts base64 to the standard alphabet, with padding. It may be in the URL-safe alphabet (RFC 4648, section 5),
 * which parsers of protocol buffers accept (https://protobuf.dev/programming-guides/json/) but other vendors do not.
 */
export function standardBase64(data: string): string {
  const isOfUrls = data.includes('-') || data.includes('_');
  const standard = isOfUrls ? data.replaceAll('-', '+').replaceAll('_', '/') : data;
  const over = standard.length % 4;
  // Base64 with line breaks is padded already, and its length says nothing about the padding.
  return over < 2 || standard.includes('\n') ? standard : standard.padEnd(standard.length + 4 - over, '=');
}
