import { test } from 'tap';
import { atTime, colourAt, paint } from '../../../src/simulator/media/painting.js';
import { jpegSheet, webpThumbnail } from '../../../src/simulator/media/thumbnail.js';
import { BitReader } from './bit-reader.js';
import { complaints, probe, run, without } from './programs.js';

const seed = 'a lighthouse';
const sizes = [
  { width: 1, height: 1 },
  { width: 17, height: 5 },
  { width: 640, height: 361 },
  { width: 4096, height: 2 },
];

interface Segment {
  readonly marker: number;
  readonly content: Buffer;
}

/** The segments of a JPEG up to its scan, and the scan without its stuffed zeros. Throws where it does not end. */
function readJpeg(file: Buffer): { segments: Segment[]; scan: Buffer } {
  const segments: Segment[] = [];
  let at = 2;
  while (segments.at(-1)?.marker !== 0xda) {
    const size = file.readUInt16BE(at + 2);
    segments.push({ marker: file.readUInt8(at + 1), content: file.subarray(at + 4, at + 2 + size) });
    at += 2 + size;
  }
  const scan: number[] = [];
  while (file[at] !== 0xff || file[at + 1] === 0) {
    scan.push(file.readUInt8(at));
    at += file[at] === 0xff ? 2 : 1;
  }
  if (file.readUInt16BE(at) !== 0xffd9 || at + 2 !== file.length) {
    throw new Error('no end of image at the end');
  }
  return { segments, scan: Buffer.from(scan) };
}

/** Symbols of a DHT segment's tables by their codes in ones and zeros; the DC table first. */
function readTables(content: Buffer): Map<string, number>[] {
  const tables: Map<string, number>[] = [];
  for (let at = 0; at < content.length; ) {
    const table = new Map<string, number>();
    let code = 0;
    let symbol = at + 17;
    for (let length = 1; length <= 16; length++) {
      for (let i = 0; i < (content[at + length] ?? 0); i++) {
        table.set(code.toString(2).padStart(length, '0'), content.readUInt8(symbol));
        code += 1;
        symbol += 1;
      }
      code *= 2;
    }
    tables.push(table);
    at = symbol;
  }
  return tables;
}

function symbolIn(bits: BitReader, table: Map<string, number> | undefined): number {
  let code = '';
  while (!table?.has(code)) {
    code += bits.bits(1);
    if (code.length > 16) throw new Error(`no symbol has the code ${code}`);
  }
  return table.get(code) ?? 0;
}

test('the RIFF chunks of a WebP end where they say, and the stream tells its size', async (t) => {
  for (const { width, height } of sizes) {
    const file = webpThumbnail({ width, height, seed });
    t.equal(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16), 'RIFFWEBPVP8L');
    t.equal(file.readUInt32LE(4), file.length - 8);
    const size = file.readUInt32LE(16);
    t.equal(20 + size + (size % 2), file.length);
    t.equal(file[20], 0x2f);
    const sizeBits = file.readUInt32LE(21);
    t.equal((sizeBits & 0x3fff) + 1, width);
    t.equal(((sizeBits >>> 14) & 0x3fff) + 1, height);
    t.equal(sizeBits >>> 28, 0, 'no alpha, version 0');
  }
});

test('a JPEG has its segments, and as many blocks as its size needs', async (t) => {
  for (const { width, height } of sizes) {
    const file = jpegSheet({ width, height, columns: 3, rows: 2, seed });
    t.equal(file.readUInt16BE(0), 0xffd8);
    const { segments, scan } = readJpeg(file);
    t.strictSame(
      segments.map(({ marker }) => marker),
      [0xe0, 0xdb, 0xc0, 0xc4, 0xda],
    );
    const frame = segments[2]?.content;
    t.strictSame([frame?.readUInt16BE(3), frame?.readUInt16BE(1)], [width, height]);
    const [dc, ac] = readTables(segments[3]?.content ?? Buffer.alloc(0));
    const bits = new BitReader(scan);
    const levels = [128, 128, 128];
    let outside = 0;
    for (let block = 0; block < 3 * Math.ceil(width / 8) * Math.ceil(height / 8); block++) {
      const size = symbolIn(bits, dc);
      const value = bits.bits(size);
      const level =
        (levels[block % 3] ?? 0) + (size > 0 && value < 2 ** (size - 1) ? value + 1 - 2 ** size : value);
      levels[block % 3] = level;
      outside += level < 0 || level > 255 ? 1 : 0;
      if (symbolIn(bits, ac) !== 0) t.fail('no end of block');
    }
    t.equal(outside, 0);
    t.ok(8 * scan.length - bits.position < 8, 'nothing but padding is left');
  }
});

test('the same arguments give the same bytes, another seed others', async (t) => {
  const size = { width: 64, height: 48 };
  const sheet = { ...size, columns: 2, rows: 2 };
  t.ok(webpThumbnail({ ...size, seed }).equals(webpThumbnail({ ...size, seed })));
  t.notOk(webpThumbnail({ ...size, seed }).equals(webpThumbnail({ ...size, seed: 'b' })));
  t.ok(jpegSheet({ ...sheet, seed }).equals(jpegSheet({ ...sheet, seed })));
  t.notOk(jpegSheet({ ...sheet, seed }).equals(jpegSheet({ ...sheet, seed: 'b' })));
});

test('what is out of bounds is a RangeError', async (t) => {
  const fine = { width: 64, height: 48, columns: 2, rows: 2, seed };
  for (const name of ['width', 'height', 'columns', 'rows'] as const) {
    for (const value of [0, 4097, 1.5]) {
      t.throws(() => jpegSheet({ ...fine, [name]: value }), { name: 'RangeError' });
    }
  }
  t.throws(() => webpThumbnail({ ...fine, width: 0 }), { name: 'RangeError', message: /^width / });
  t.throws(() => webpThumbnail({ ...fine, height: 4097 }), { name: 'RangeError', message: /^height / });
});

test('ffprobe and ffmpeg find nothing to complain of', { skip: without('ffprobe', 'ffmpeg') }, async (t) => {
  for (const { width, height } of sizes) {
    for (const [codec, file] of [
      ['webp', webpThumbnail({ width, height, seed })],
      ['mjpeg', jpegSheet({ width, height, columns: 3, rows: 2, seed })],
    ] as const) {
      const { fields } = probe(file);
      t.match(Object.fromEntries(fields), { codec_name: codec, width: `${width}`, height: `${height}` });
      t.equal(complaints(file), '');
    }
  }
});

test('ffmpeg decodes the very colours of a WebP, and those of a JPEG nearly', {
  skip: without('ffmpeg'),
}, async (t) => {
  const size = { width: 160, height: 90 };
  const painting = atTime(paint(seed, size.width, size.height), 0);
  for (const { file, tolerance, centre } of [
    { file: webpThumbnail({ ...size, seed }), tolerance: 0, centre: 0.5 },
    { file: jpegSheet({ ...size, columns: 1, rows: 1, seed }), tolerance: 6, centre: 0 },
  ]) {
    const pixels = run(
      'ffmpeg',
      ['-v', 'error', '-i', 'pipe:0', '-pix_fmt', 'rgb24', '-f', 'rawvideo', '-'],
      file,
    ).output;
    t.equal(pixels.length, 3 * size.width * size.height);
    for (let y = 4; y < size.height; y += 8) {
      for (let x = 4; x < size.width; x += 8) {
        const found = [...pixels.subarray(3 * (y * size.width + x)).subarray(0, 3)];
        const wanted = colourAt(painting, x + centre, y + centre);
        const isNear = wanted.every((value, channel) => Math.abs(value - (found[channel] ?? 0)) <= tolerance);
        if (!isNear) t.fail(`${found} at ${x}, ${y}, not ${wanted}`);
      }
    }
  }
});
