/* `data:` URLs (RFC 2397). */

const scheme = 'data:';
const base64Mark = ';base64';
/** Maximum length of a head (media type and parameters), so that megabytes without a comma are not searched. */
const longestHead = 64 * 1024;

interface SplitDataUrl {
  /** The media type as written; empty if the URL has none. */
  readonly mediaType: string;
  readonly isBase64: boolean;
  readonly data: string;
}

/** Splits a `data:` URL, ignoring case. @returns null for any other text */
export function splitDataUrl(url: string): SplitDataUrl | null {
  const comma = url.slice(0, longestHead).indexOf(',');
  if (comma === -1 || url.slice(0, scheme.length).toLowerCase() !== scheme) return null;
  const words = url.slice(scheme.length, comma);
  return {
    mediaType: words.split(';', 1)[0] ?? '',
    isBase64: words.trimEnd().toLowerCase().endsWith(base64Mark),
    data: url.slice(comma + 1),
  };
}

/** Builds a `data:` URL in base64. */
export function dataUrl(mediaType: string, base64: string): string {
  return `${scheme}${mediaType}${base64Mark},${base64}`;
}
