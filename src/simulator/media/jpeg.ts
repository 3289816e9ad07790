import { BitWriter } from './bit-writer.js';
import type { Colour } from './painting.js';

const side = 8;
/** With it a DC level is the mean of a block's samples, exactly. */
const quantiser = 8;
const components = 3;
/** Codes of the DC sizes 0 to 11 (ITU-T T.81, table K.3): how many there are of each length. */
const sizeCounts = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const sizes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/** The only AC symbol: end of block, one bit. */
const endCounts = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const endOfBlock = [0];

/** A baseline JPEG (ITU-T T.81) whose blocks of 8 by 8 pixels have one colour each: that of the block's centre. */
export function jpegImage(width: number, height: number, colourAt: (x: number, y: number) => Colour): Buffer {
  const bits = new BitWriter();
  const before: [number, number, number] = [128, 128, 128];
  for (let y = 0; y < height; y += side) {
    for (let x = 0; x < width; x += side) {
      const samples = samplesOf(colourAt(x + side / 2, y + side / 2));
      for (let component = 0; component < components; component++) {
        const sample = samples[component] ?? 0;
        writeBlock(bits, sample - (before[component] ?? 0));
        before[component] = sample;
      }
    }
  }
  bits.align(1);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), head(width, height), stuffed(bits.bytes()), ends]);
}

const ends = Buffer.from([0xff, 0xd9]);

function head(width: number, height: number): Buffer {
  const size = [height >> 8, height & 0xff, width >> 8, width & 0xff];
  return Buffer.concat([
    segment(0xe0, [...Buffer.from('JFIF\0'), 1, 1, 0, 0, 1, 0, 1, 0, 0]),
    segment(0xdb, [0, ...Array<number>(side * side).fill(quantiser)]),
    segment(0xc0, [8, ...size, components, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]),
    segment(0xc4, [0x00, ...sizeCounts, ...sizes, 0x10, ...endCounts, ...endOfBlock]),
    segment(0xda, [components, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
  ]);
}

function segment(marker: number, content: readonly number[]): Buffer {
  const length = 2 + content.length;
  return Buffer.from([0xff, marker, length >> 8, length & 0xff, ...content]);
}

/** A difference of DC levels (F.1.2.1): its size, its bits, and the end of the block. */
function writeBlock(bits: BitWriter, difference: number): void {
  const size = 32 - Math.clz32(Math.abs(difference));
  writeSize(bits, size);
  bits.put(difference < 0 ? difference - 1 : difference, size);
  bits.put(0, 1);
}

/** The canonical code (annex C) of the counts above. */
function writeSize(bits: BitWriter, size: number): void {
  if (size === 0) {
    bits.put(0b00, 2);
  } else if (size <= 5) {
    bits.put(0b001 + size, 3);
  } else {
    bits.put((1 << (size - 2)) - 2, size - 2);
  }
}

/** A zero follows each byte 255, so that it is no marker (B.1.1.5). */
function stuffed(bytes: Buffer): Buffer {
  const whole = Buffer.allocUnsafe(2 * bytes.length);
  let length = 0;
  for (const byte of bytes) {
    whole[length++] = byte;
    if (byte === 0xff) {
      whole[length++] = 0;
    }
  }
  return whole.subarray(0, length);
}

/** Y, Cb and Cr as JFIF defines them, 0 to 255. */
function samplesOf([red, green, blue]: Colour): [number, number, number] {
  const light = 0.299 * red + 0.587 * green + 0.114 * blue;
  const chroma = (from: number, scale: number): number =>
    Math.min(255, Math.round(128 + (from - light) / scale));
  return [Math.round(light), chroma(blue, 1.772), chroma(red, 1.402)];
}
