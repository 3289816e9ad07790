import { readFileSync } from 'node:fs';

/** Width and height in pixels of the files `video-*`, in the order in which they are preferred. */
const sizes = [
  [1280, 720],
  [720, 1280],
  [720, 720],
  [320, 180],
] as const;

const kept = new Map<string, Buffer>();

/** A media file of the folder `assets/`, which is read once; `make.sh` there made them. The bytes are to read only. */
export function asset(name: string): Buffer {
  const bytes = kept.get(name) ?? readFileSync(new URL(`assets/${name}`, import.meta.url));
  kept.set(name, bytes);
  return bytes;
}

/** The size that there is a video of, and pictures of it, and that is most like the one asked for: shape before size. */
export function nearestSize(
  width: number,
  height: number,
): { readonly width: number; readonly height: number } {
  const away = ([w, h]: readonly [number, number]): number => {
    const [wider, higher] = [Math.log(width / w), Math.log(height / h)];
    return Math.abs(wider) + Math.abs(higher) + 2 * Math.abs(wider - higher);
  };
  const [nearestWidth, nearestHeight] = sizes.reduce((best, size) => (away(size) < away(best) ? size : best));
  return { width: nearestWidth, height: nearestHeight };
}

/** A small picture with which the video of this size begins: WebP, 320 pixels wide. */
export function webpThumbnail(size: { width: number; height: number }): Buffer {
  return asset(`thumbnail-${nameOf(size)}.webp`);
}

/** Twelve moments of the video of this size in four columns and three rows: JPEG, 640 pixels wide. */
export function jpegSheet(size: { width: number; height: number }): Buffer {
  return asset(`sheet-${nameOf(size)}.jpg`);
}

function nameOf(size: { width: number; height: number }): string {
  const { width, height } = nearestSize(size.width, size.height);
  return `${width}x${height}`;
}
