/* `data:` URLs (RFC 2397). */

const scheme = 'data:';
const base64Mark = ';base64';
/** A head has a media type and perhaps some parameters; in what has no comma nobody looks for one through megabytes. */
const longestHead = 64 * 1024;

interface SplitDataUrl {
  /** As it stands there; empty where the URL does not say. */
  readonly mediaType: string;
  readonly isBase64: boolean;
  readonly data: string;
}

/** Takes a `data:` URL apart, in any case of its letters. @returns null for a text that is none */
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

/** A `data:` URL in base64. */
export function dataUrl(mediaType: string, base64: string): string {
  return `${scheme}${mediaType}${base64Mark},${base64}`;
}
