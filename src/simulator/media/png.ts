import { crc32, deflateSync } from 'node:zlib';
import { whole } from './bounds.js';
import { paint, paintRow } from './painting.js';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const mostPixels = 4096;
const bitDepth = 8;
const paletteColour = 3;

/**
 * A PNG (ISO/IEC 15948) with a palette, whose picture the seed decides. Width and height are 1 to 4096 pixels; a
 * RangeError tells of others.
 */
export function pngImage(options: { width: number; height: number; seed: string }): Buffer {
  const width = whole('width', options.width, 1, mostPixels);
  const height = whole('height', options.height, 1, mostPixels);
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
