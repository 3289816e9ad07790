import { isObject, type JsonObject, textOrNull } from '../wire/json.js';
import type { VideoRequest } from './task.js';

/** `720p` or `4k`, where a size is no width and height. */
const word = /^(?:\d{3,4}p|\dk)$/;
const longest = 64;

/**
 * What a video is priced by beside its length: the `resolution` that the client names, in lower case, or a size such as
 * `720p`, else the shorter side of the size in that form, else the mode (vendork's `std` or `pro`).
 * @returns null where the client names none of them, or two that differ: nobody can tell which one the upstream takes
 */
export function resolutionOf({
  body,
  width,
  height,
  mode,
}: Pick<VideoRequest, 'body' | 'width' | 'height' | 'mode'>): string | null {
  const holders = [body, body.metadata, body.extra_body].filter(isObject);
  const named = new Set(holders.flatMap(namedIn));
  if (named.size > 0) return named.size === 1 ? ([...named][0] ?? null) : null;
  return width !== null && height !== null ? `${Math.min(width, height)}p` : mode;
}

function namedIn({ resolution, size }: JsonObject): string[] {
  const words = [textOrNull(resolution) ?? '', textOrNull(size) ?? ''].map((text) => text.toLowerCase());
  return words.filter((text, index) =>
    index === 0 ? text !== '' && text.length <= longest : word.test(text),
  );
}
