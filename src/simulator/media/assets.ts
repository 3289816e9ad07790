import { readFileSync } from 'node:fs';

/** Width and height in pixels of the files `video-*`, in order of preference. */
const sizes = [
  [1280, 720],
  [720, 1280],
  [720, 720],
  [320, 180],
] as const;

const kept = new Map<string, Buffer>();

/** A file of the folder `assets/`, created by `make.sh` there. Files are read once; their bytes must not be changed. */
export function asset(name: string): Buffer {
  const bytes = kept.get(name) ?? readFileSync(new URL(`assets/${name}`, import.meta.url));
  kept.set(name, bytes);
  return bytes;
}

/** The available size of videos and their pictures that is nearest to the requested one, by ratio first. */
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

/** The first picture of the video of this size: WebP, 320 pixels wide. */
export function webpThumbnail(size: { width: number; height: number }): Buffer {
  return asset(`thumbnail-${nameOf(size)}.webp`);
}

/** Twelve pictures of the video of this size in four columns and three rows: JPEG, 640 pixels wide. */
export function jpegSheet(size: { width: number; height: number }): Buffer {
  return asset(`sheet-${nameOf(size)}.jpg`);
}

function nameOf(size: { width: number; height: number }): string {
  const { width, height } = nearestSize(size.width, size.height);
  return `${width}x${height}`;
}
