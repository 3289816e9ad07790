import { whole } from './bounds.js';
import { jpegImage } from './jpeg.js';
import { atTime, colourAt, paint, paintRow } from './painting.js';
import { webpImage } from './vp8l.js';

const mostPixels = 4096;
const mostTiles = 64;
const secondsBetweenTiles = 0.5;

/**
 * A lossless WebP of the picture with which the video of the same seed begins. Width and height are 1 to 4096 pixels; a
 * RangeError tells of others.
 */
export function webpThumbnail(options: { width: number; height: number; seed: string }): Buffer {
  const width = whole('width', options.width, 1, mostPixels);
  const height = whole('height', options.height, 1, mostPixels);
  const painting = atTime(paint(options.seed, width, height), 0);
  const packed = painting.palette.map(([red, green, blue]) => (red << 16) | (green << 8) | blue);
  const positions = new Uint8Array(width);
  const row = new Uint32Array(width);
  return webpImage(width, height, (y) => {
    paintRow(painting, y, positions, 0);
    for (let x = 0; x < width; x++) {
      row[x] = packed[positions[x] ?? 0] ?? 0;
    }
    return row;
  });
}

/**
 * A JPEG of moments of the video of the same seed, row by row, half a second apart. Width and height are those of the
 * whole sheet, 1 to 4096 pixels; columns and rows are 1 to 64. A RangeError tells of others.
 */
export function jpegSheet(options: {
  width: number;
  height: number;
  columns: number;
  rows: number;
  seed: string;
}): Buffer {
  const width = whole('width', options.width, 1, mostPixels);
  const height = whole('height', options.height, 1, mostPixels);
  const columns = whole('columns', options.columns, 1, mostTiles);
  const rows = whole('rows', options.rows, 1, mostTiles);
  const tileWidth = width / columns;
  const tileHeight = height / rows;
  const still = paint(options.seed, tileWidth, tileHeight);
  const tiles = Array.from({ length: columns * rows }, (_, index) =>
    atTime(still, secondsBetweenTiles * index),
  );
  return jpegImage(width, height, (x, y) => {
    const column = Math.min(columns - 1, Math.floor(x / tileWidth));
    const row = Math.min(rows - 1, Math.floor(y / tileHeight));
    const tile = tiles[row * columns + column] ?? still;
    return colourAt(tile, x - column * tileWidth, y - row * tileHeight);
  });
}
