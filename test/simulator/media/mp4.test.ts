import fc from 'fast-check';
import { test } from 'tap';
import { mp4Video } from '../../../src/simulator/media/mp4.js';
import { decodeSlice, payloadOf, readSequence, type Samples } from './h264-reader.js';
import { boxOf, configurationOf, numbersOf, readBoxes, samplePlaces } from './mp4-reader.js';
import { complaints, probe, run, without } from './programs.js';

const cases = [
  { width: 320, height: 180, seconds: 5, fps: 24, level: 12 },
  { width: 16, height: 16, seconds: 1, fps: 1, level: 10 },
  { width: 17, height: 31, seconds: 2, fps: 7, level: 10 },
  { width: 854, height: 480, seconds: 1, fps: 30, level: 31 },
  { width: 1920, height: 16, seconds: 3, fps: 25, level: 31 },
  { width: 16, height: 1920, seconds: 1.5, fps: 60, level: 31 },
  { width: 640, height: 360, seconds: 4, fps: 29.97, level: 30 },
  { width: 1920, height: 1920, seconds: 1, fps: 60, level: 51 },
];
const seed = 'a lighthouse';

/** Decodes a video with the readers of these tests; gives a picture for each frame. */
function decode(file: Buffer): { pictures: Samples[][]; idr: number[]; columns: number } {
  const boxes = readBoxes(file);
  const { columns, rows } = readSequence(configurationOf(boxes).sequence);
  const picture: Samples[] = Array.from({ length: columns * rows }, () => [0, 0, 0]);
  const pictures: Samples[][] = [];
  const idr: number[] = [];
  let sinceIdr = 0;
  for (const [index, { offset, size }] of samplePlaces(boxes).entries()) {
    if (file.readUInt32BE(offset) !== size - 4) {
      throw new Error(`sample ${index} is not one NAL unit`);
    }
    const { isIdr, frame } = decodeSlice(file.subarray(offset + 4, offset + size), columns, picture);
    sinceIdr = isIdr ? 0 : sinceIdr + 1;
    if (frame !== sinceIdr) {
      throw new Error(`sample ${index} has frame number ${frame}`);
    }
    if (isIdr) {
      idr.push(index + 1);
    }
    pictures.push([...picture]);
  }
  return { pictures, idr, columns };
}

test('the boxes add up, the index comes first, and every sample is where the tables say', async (t) => {
  for (const options of cases) {
    const file = mp4Video({ ...options, seed });
    const frames = Math.round(options.seconds * options.fps);
    const boxes = readBoxes(file);
    t.strictSame(
      boxes.filter(({ path }) => !path.includes('.')).map(({ path }) => path),
      ['ftyp', 'moov', 'mdat'],
    );
    const data = boxOf(boxes, 'mdat');
    const places = samplePlaces(boxes);
    t.equal(places.length, frames);
    let next = data.start;
    for (const { offset, size } of places) {
      if (offset !== next) t.fail(`a sample at ${offset}, not ${next}`);
      next += size;
    }
    t.equal(next, file.length, 'the samples fill mdat');
    const [timeScale = 0, duration = 0] = numbersOf(boxOf(boxes, 'mdhd'), 12);
    t.strictSame(numbersOf(boxOf(boxes, 'stts'), 4), [1, frames, 1000]);
    t.equal(duration, 1000 * frames);
    t.equal(timeScale, Math.round(1000 * options.fps));
    t.strictSame(numbersOf(boxOf(boxes, 'mvhd'), 12).slice(0, 2), [timeScale, duration]);
  }
});

test('the parameter sets tell profile, level, size and rate', async (t) => {
  for (const { level, ...options } of cases) {
    const boxes = readBoxes(mp4Video({ ...options, seed }));
    const { head, sequence, picture } = configurationOf(boxes);
    const fields = readSequence(sequence);
    const even = { width: options.width & ~1, height: options.height & ~1 };
    t.match(fields, { profile: 66, constraints: 0xc0, level, ...even });
    t.ok(Math.abs(fields.rate - options.fps) < 0.001);
    t.strictSame(head, [1, 66, 0xc0, level, 0xff, 0xe1]);
    t.equal(picture[0], 0x68);
    t.ok(payloadOf(picture).length > 0);
    const shown = numbersOf(boxOf(boxes, 'tkhd'), 76).map((value) => value / 65536);
    t.strictSame(shown, [even.width, even.height]);
  }
});

test('every picture decodes to its exact end, and seeking has an IDR picture every two seconds', async (t) => {
  for (const options of cases.slice(0, 7)) {
    const file = mp4Video({ ...options, seed });
    const { pictures, idr } = decode(file);
    t.strictSame(numbersOf(boxOf(readBoxes(file), 'stss'), 8), idr);
    const distance = Math.round(2 * options.fps);
    t.strictSame(
      idr,
      pictures.flatMap((_, index) => (index % distance === 0 ? [index + 1] : [])),
    );
    const inRange = pictures.every((picture) =>
      picture.every(([y, cb, cr]) => y >= 16 && y <= 235 && cb >= 16 && cb <= 240 && cr >= 16 && cr <= 240),
    );
    t.ok(inRange, 'limited range');
  }
});

test('a video of any seed, size and rate decodes', async (t) => {
  const side = fc.integer({ min: 16, max: 200 });
  const options = fc.record({
    width: side,
    height: side,
    seconds: fc.integer({ min: 1, max: 3 }),
    fps: fc.integer({ min: 1, max: 12 }),
    seed: fc.string(),
  });
  fc.assert(
    fc.property(options, (drawn) => {
      const { pictures } = decode(mp4Video(drawn));
      return pictures.length === drawn.seconds * drawn.fps;
    }),
  );
  t.pass();
});

test('something moves from picture to picture, and most stays', async (t) => {
  const { pictures } = decode(mp4Video({ width: 320, height: 180, seconds: 2, fps: 10, seed }));
  for (const [index, picture] of pictures.entries()) {
    const before = pictures[index - 1] ?? [];
    const changed = picture.filter((samples, at) => `${samples}` !== `${before[at]}`).length;
    if (index > 0 && (changed === 0 || changed > picture.length / 3)) t.fail(`${changed} changed`);
  }
  t.equal(pictures.length, 20);
});

test('the same arguments give the same bytes, another seed others', async (t) => {
  const options = { width: 64, height: 48, seconds: 1, fps: 5 };
  t.ok(mp4Video({ ...options, seed: 'a' }).equals(mp4Video({ ...options, seed: 'a' })));
  t.notOk(mp4Video({ ...options, seed: 'a' }).equals(mp4Video({ ...options, seed: 'b' })));
});

test('a video is small, however long', async (t) => {
  t.ok(mp4Video({ width: 1280, height: 720, seconds: 5, fps: 24, seed }).length < 128 * 1024);
  t.ok(mp4Video({ width: 1280, height: 720, seconds: 60, fps: 30, seed }).length < 2 * 1024 * 1024);
});

test('what is out of bounds is a RangeError that names it', async (t) => {
  const fine = { width: 64, height: 48, seconds: 1, fps: 5, seed };
  for (const [name, values] of [
    ['width', [15, 1921, 17.5, Number.NaN]],
    ['height', [0, 1921, Number.POSITIVE_INFINITY]],
    ['seconds', [0.9, 61, Number.NaN]],
    ['fps', [0, 61]],
  ] as const) {
    for (const value of values) {
      t.throws(() => mp4Video({ ...fine, [name]: value }), {
        name: 'RangeError',
        message: new RegExp(`^${name} `),
      });
    }
  }
});

test('ffprobe and ffmpeg find nothing to complain of', { skip: without('ffprobe', 'ffmpeg') }, async (t) => {
  for (const { level, ...options } of cases) {
    const file = mp4Video({ ...options, seed });
    const frames = Math.round(options.seconds * options.fps);
    const { fields, messages } = probe(file);
    t.equal(messages, '');
    t.match(Object.fromEntries(fields), {
      codec_name: 'h264',
      profile: 'Constrained Baseline',
      width: `${options.width & ~1}`,
      height: `${options.height & ~1}`,
      level: `${level}`,
      pix_fmt: 'yuv420p',
      nb_frames: `${frames}`,
      nb_read_frames: `${frames}`,
    });
    t.ok(Math.abs(Number(fields.get('duration')) - frames / options.fps) < 0.001);
    t.equal(complaints(file), '');
  }
});

test('ffmpeg decodes every sample as these tests do', { skip: without('ffmpeg') }, async (t) => {
  for (const size of [
    { width: 112, height: 80 },
    { width: 70, height: 38 },
  ]) {
    const file = mp4Video({ ...size, seconds: 3, fps: 6, seed });
    const { pictures, columns } = decode(file);
    const raw = run(
      'ffmpeg',
      ['-v', 'error', '-i', 'pipe:0', '-pix_fmt', 'yuv420p', '-f', 'rawvideo', '-'],
      file,
    ).output;
    t.ok(raw.equals(Buffer.concat(pictures.map((picture) => planes(picture, columns, size)))));
  }
});

/** A picture as the planes of yuv420p. */
function planes(
  picture: readonly Samples[],
  columns: number,
  { width, height }: { width: number; height: number },
): Buffer {
  const plane = (component: 0 | 1 | 2, side: number, scale: number): number[] =>
    Array.from({ length: (width / scale) * (height / scale) }, (_, index) => {
      const x = index % (width / scale);
      const y = (index - x) / (width / scale);
      return picture[Math.floor(y / side) * columns + Math.floor(x / side)]?.[component] ?? 0;
    });
  return Buffer.from([...plane(0, 16, 1), ...plane(1, 8, 2), ...plane(2, 8, 2)]);
}
