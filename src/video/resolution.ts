import { textOrNull } from '../wire/json.js';
import type { VideoRequest } from './task.js';

const longestWord = 64;

/**
 * What a video is priced by beside its length: the `resolution` that the client names, in lower case, else the shorter
 * side of the size as `720p`, else the mode (vendork's `std` or `pro`); null where it names none of them.
 */
export function resolutionOf({
  body,
  width,
  height,
  mode,
}: Pick<VideoRequest, 'body' | 'width' | 'height' | 'mode'>): string | null {
  const named = textOrNull(body.resolution);
  if (named !== null && named !== '' && named.length <= longestWord) return named.toLowerCase();
  return width !== null && height !== null ? `${Math.min(width, height)}p` : mode;
}
