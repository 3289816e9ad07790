import { crc32, inflateSync } from 'node:zlib';
import { test } from 'tap';
import { pngImage } from '../../../src/simulator/media/png.js';
import { complaints, probe, without } from './programs.js';

const sizes = [
  { width: 1, height: 1 },
  { width: 17, height: 5 },
  { width: 640, height: 360 },
  { width: 4096, height: 3 },
  { width: 2048, height: 2048 },
];

/** The chunks of a PNG in order. Throws where a checksum is wrong or the last does not end with the file. */
function chunksOf(file: Buffer): { type: string; content: Buffer }[] {
  const chunks: { type: string; content: Buffer }[] = [];
  let at = 8;
  while (at < file.length) {
    const size = file.readUInt32BE(at);
    if (file.readUInt32BE(at + 8 + size) !== crc32(file.subarray(at + 4, at + 8 + size))) {
      throw new Error(`checksum of the chunk at ${at}`);
    }
    chunks.push({
      type: file.toString('latin1', at + 4, at + 8),
      content: file.subarray(at + 8, at + 8 + size),
    });
    at += 12 + size;
  }
  return chunks;
}

test('chunks, checksums and the number of pixels are right', async (t) => {
  for (const { width, height } of sizes) {
    const file = pngImage({ width, height, seed: 'a lighthouse' });
    t.equal(file.toString('latin1', 0, 8), '\x89PNG\r\n\x1a\n');
    const chunks = chunksOf(file);
    t.strictSame(
      chunks.map(({ type }) => type),
      ['IHDR', 'PLTE', 'IDAT', 'IEND'],
    );
    const [header, palette, data] = chunks.map(({ content }) => content);
    t.strictSame([header?.readUInt32BE(0), header?.readUInt32BE(4)], [width, height]);
    t.strictSame([...(header ?? Buffer.alloc(0)).subarray(8)], [8, 3, 0, 0, 0]);
    const rows = inflateSync(data ?? Buffer.alloc(0));
    t.equal(rows.length, height * (width + 1));
    const colours = (palette?.length ?? 0) / 3;
    t.ok(Number.isInteger(colours) && colours <= 256);
    for (let y = 0; y < height; y++) {
      if (rows[y * (width + 1)] !== 0) t.fail(`filter of row ${y}`);
    }
    t.ok(rows.every((position) => position < colours));
  }
});

test('a seed has its picture', async (t) => {
  const picture = (seed: string) => pngImage({ width: 64, height: 64, seed });
  t.ok(picture('a').equals(picture('a')));
  const seen = new Set(['a', 'b', 'c', '', 'é'].map((seed) => picture(seed).toString('latin1')));
  t.equal(seen.size, 5);
});

test('sizes out of bounds are a RangeError', async (t) => {
  for (const size of [0, 4097, 1.5, Number.NaN]) {
    t.throws(() => pngImage({ width: size, height: 9, seed: '' }), {
      name: 'RangeError',
      message: /^width /,
    });
    t.throws(() => pngImage({ width: 9, height: size, seed: '' }), {
      name: 'RangeError',
      message: /^height /,
    });
  }
});

test('ffprobe and ffmpeg find nothing to complain of', { skip: without('ffprobe', 'ffmpeg') }, async (t) => {
  for (const { width, height } of sizes) {
    const file = pngImage({ width, height, seed: 'a lighthouse' });
    const { fields, messages } = probe(file);
    t.equal(messages, '');
    t.match(Object.fromEntries(fields), { codec_name: 'png', width: `${width}`, height: `${height}` });
    t.equal(complaints(file), '');
  }
});
