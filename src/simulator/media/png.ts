import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import { whole } from './bounds.js';

/** Red, green and blue, 0 to 255. */
type Colour = readonly [red: number, green: number, blue: number];

interface Shape {
  readonly kind: 'disc' | 'box';
  /** Centre and half the extent, in pixels. */
  readonly x: number;
  readonly y: number;
  readonly reach: number;
  /** Position in the palette. */
  readonly colour: number;
}

/** The picture of a seed: bands of a gradient from top to bottom, and shapes on them, the last one on top. */
interface Painting {
  readonly width: number;
  readonly height: number;
  /** The bands from top to bottom, then the shapes. At most 256 colours. */
  readonly palette: readonly Colour[];
  readonly shapes: readonly Shape[];
}

const bands = 64;
const shapeCount = 4;
const bytesPerShape = 5;

/** Creates the picture of a seed in a size in pixels. */
function paint(seed: string, width: number, height: number): Painting {
  const entropy = createHash('sha256').update(seed).digest();
  const byte = (at: number): number => entropy[at] ?? 0;
  const hue = byte(0) / 256;
  const top = colourOf(hue, 0.3 + byte(1) / 1024);
  const bottom = colourOf(hue + 0.15 + byte(2) / 512, 0.6 + byte(3) / 1024);
  const palette: Colour[] = [];
  for (let band = 0; band < bands; band++) {
    palette.push(blend(top, bottom, band / (bands - 1)));
  }
  const shapes: Shape[] = [];
  for (let index = 0; index < shapeCount; index++) {
    const at = 4 + bytesPerShape * index;
    shapes.push({
      kind: byte(at) % 2 === 0 ? 'disc' : 'box',
      x: (width * byte(at + 1)) / 255,
      y: (height * byte(at + 2)) / 255,
      reach: Math.min(width, height) * (0.08 + byte(at + 3) / 1500),
      colour: palette.length,
    });
    palette.push(colourOf(byte(at + 4) / 256, 0.5));
  }
  return { width, height, palette, shapes };
}

/** Writes row `y` as palette indices, one byte per pixel, to `target` at `offset`. */
function paintRow(painting: Painting, y: number, target: Uint8Array, offset: number): void {
  target.fill(bandAt(painting, y + 0.5), offset, offset + painting.width);
  for (const shape of painting.shapes) {
    const half = halfWidth(shape, y + 0.5);
    if (half > 0) {
      const from = Math.max(0, Math.round(shape.x - half));
      const to = Math.min(painting.width, Math.round(shape.x + half));
      target.fill(shape.colour, offset + from, offset + Math.max(from, to));
    }
  }
}

/** A blend of two colours; `share` is 0 for the first and 1 for the second. */
function blend(first: Colour, second: Colour, share: number): Colour {
  const between = (a: number, b: number): number => Math.round(a + (b - a) * share);
  return [between(first[0], second[0]), between(first[1], second[1]), between(first[2], second[2])];
}

function bandAt({ height }: Painting, y: number): number {
  return Math.min(bands - 1, Math.floor((y * bands) / height));
}

/** Half the width of a shape at a height; 0 outside it. */
function halfWidth({ kind, y: centre, reach }: Shape, y: number): number {
  const away = Math.abs(y - centre);
  if (away >= reach) {
    return 0;
  }
  return kind === 'box' ? reach : Math.sqrt(reach * reach - away * away);
}

/** A saturated colour; the hue is in turns, the lightness from 0 to 1. */
function colourOf(hue: number, lightness: number): Colour {
  const reach = 0.65 * Math.min(lightness, 1 - lightness);
  const channel = (shift: number): number => {
    const place = (shift + 12 * hue) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const maxPixels = 4096;
const bitDepth = 8;
const paletteColour = 3;

/**
 * A PNG (ISO/IEC 15948) with a palette and the picture of the seed.
 * @throws RangeError if width or height is outside 1 to 4096 pixels
 */
export function pngImage(options: { width: number; height: number; seed: string }): Buffer {
  const width = whole('width', options.width, 1, maxPixels);
  const height = whole('height', options.height, 1, maxPixels);
  const painting = paint(options.seed, width, height);
  const rows = Buffer.allocUnsafe(height * (1 + width));
  for (let y = 0; y < height; y++) {
    const start = y * (1 + width);
    rows[start] = 0;
    paintRow(painting, y, rows, start + 1);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = bitDepth;
  header[9] = paletteColour;
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(painting.palette.flat())),
    chunk('IDAT', deflateSync(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, content: Buffer): Buffer {
  const whole = Buffer.allocUnsafe(12 + content.length);
  whole.writeUInt32BE(content.length, 0);
  whole.write(type, 4, 'latin1');
  content.copy(whole, 8);
  whole.writeUInt32BE(crc32(whole.subarray(4, 8 + content.length)), 8 + content.length);
  return whole;
}
