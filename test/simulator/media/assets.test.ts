import { readdirSync } from 'node:fs';
import { test } from 'tap';
import { asset, jpegSheet, nearestSize, webpThumbnail } from '../../../src/simulator/media/assets.js';
import { complaints, probe, without } from './programs.js';

const sizes = [
  { width: 1920, height: 1080, of: '1280x720' },
  { width: 1280, height: 720, of: '1280x720' },
  { width: 1024, height: 1792, of: '720x1280' },
  { width: 1024, height: 1024, of: '720x720' },
  { width: 64, height: 48, of: '320x180' },
];

test('the size that is nearest has its pictures', async (t) => {
  for (const { of, ...size } of sizes) {
    const { width, height } = nearestSize(size.width, size.height);
    t.equal(`${width}x${height}`, of);
    t.ok(webpThumbnail(size).equals(asset(`thumbnail-${of}.webp`)));
    t.ok(jpegSheet(size).equals(asset(`sheet-${of}.jpg`)));
  }
});

test('the pictures are WebP and JPEG, whole', async (t) => {
  for (const size of sizes) {
    const webp = webpThumbnail(size);
    t.equal(webp.toString('latin1', 0, 4) + webp.toString('latin1', 8, 12), 'RIFFWEBP');
    t.equal(webp.readUInt32LE(4), webp.length - 8);
    const jpeg = jpegSheet(size);
    t.strictSame([jpeg.readUInt16BE(0), jpeg.readUInt16BE(jpeg.length - 2)], [0xffd8, 0xffd9]);
  }
});

test('the build has copied every file', async (t) => {
  const sources = new URL('../../../../src/simulator/media/assets/', import.meta.url);
  const names = readdirSync(sources).filter((name) => !name.endsWith('.sh'));
  t.ok(names.length > 10);
  for (const name of names) t.ok(asset(name).length > 0, name);
});

test('ffprobe and ffmpeg find nothing to complain of', { skip: without('ffprobe', 'ffmpeg') }, async (t) => {
  for (const size of sizes) {
    const { width, height } = nearestSize(size.width, size.height);
    const scaled = (wanted: number): number => 2 * Math.round((wanted * height) / width / 2);
    for (const [codec, file, shown] of [
      ['webp', webpThumbnail(size), { width: '320', height: `${scaled(320)}` }],
      ['mjpeg', jpegSheet(size), { width: '640', height: `${3 * scaled(160)}` }],
    ] as const) {
      const { fields } = probe(file);
      t.match(Object.fromEntries(fields), { codec_name: codec, ...shown });
      t.equal(complaints(file), '');
    }
  }
});
