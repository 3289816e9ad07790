import { test } from 'tap';
import { nearestSize } from '../../../src/simulator/media/assets.js';
import { mp4Video } from '../../../src/simulator/media/mp4.js';
import { fc } from '../../support/seed.js';
import { boxOf, configurationOf, numbersOf, readBoxes, samplePlaces } from './mp4-reader.js';
import { complaints, probe, run, without } from './programs.js';

const cases = [
  { width: 320, height: 180, seconds: 5, fps: 24 },
  { width: 16, height: 16, seconds: 1, fps: 1 },
  { width: 17, height: 31, seconds: 2, fps: 7 },
  { width: 854, height: 480, seconds: 1, fps: 30 },
  { width: 1920, height: 16, seconds: 3, fps: 25 },
  { width: 16, height: 1920, seconds: 1.5, fps: 60 },
  { width: 640, height: 360, seconds: 4, fps: 29.97 },
  { width: 1920, height: 1920, seconds: 1, fps: 60 },
];
const seed = 'a lighthouse';

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

test('each sample is one picture, and every two seconds of the recording one can be sought', async (t) => {
  for (const options of cases) {
    const file = mp4Video({ ...options, seed });
    const boxes = readBoxes(file);
    const { head, sequence, picture } = configurationOf(boxes);
    t.strictSame(
      [head[0], head[1], head[4], head[5]],
      [1, 66, 0xff, 0xe1],
      'baseline, lengths of four bytes',
    );
    t.strictSame([(sequence[0] ?? 0) & 0x1f, (picture[0] ?? 0) & 0x1f], [7, 8]);
    const idr: number[] = [];
    for (const [index, { offset, size }] of samplePlaces(boxes).entries()) {
      if (file.readUInt32BE(offset) !== size - 4) t.fail(`sample ${index} is not one NAL unit`);
      const type = (file[offset + 4] ?? 0) & 0x1f;
      if (type === 5) idr.push(index + 1);
      else if (type !== 1) t.fail(`sample ${index} is a NAL unit of type ${type}`);
    }
    t.strictSame(numbersOf(boxOf(boxes, 'stss'), 8), idr);
    const frames = Math.round(options.seconds * options.fps);
    t.strictSame(
      idr,
      Array.from({ length: Math.ceil(frames / 48) }, (_, index) => 48 * index + 1),
    );
  }
});

test('a video of any seed, size and rate lasts as long as was asked for', async (t) => {
  const side = fc.integer({ min: 16, max: 1920 });
  const options = fc.record({
    width: side,
    height: side,
    seconds: fc.integer({ min: 1, max: 3 }),
    fps: fc.integer({ min: 1, max: 12 }),
    seed: fc.string({ unit: 'grapheme' }),
  });
  fc.assert(
    fc.property(options, (drawn) => {
      const file = mp4Video(drawn);
      const boxes = readBoxes(file);
      const [timeScale = 0, duration = 0] = numbersOf(boxOf(boxes, 'mdhd'), 12);
      const frames = drawn.seconds * drawn.fps;
      return (
        samplePlaces(boxes).length === frames &&
        duration === drawn.seconds * timeScale &&
        boxOf(boxes, 'udta').content.includes(drawn.seed)
      );
    }),
  );
  t.pass();
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
  for (const options of cases) {
    const file = mp4Video({ ...options, seed });
    const frames = Math.round(options.seconds * options.fps);
    const { fields, messages } = probe(file);
    t.equal(messages, '');
    const { width, height } = nearestSize(options.width, options.height);
    t.match(Object.fromEntries(fields), {
      codec_name: 'h264',
      profile: 'Constrained Baseline',
      width: `${width}`,
      height: `${height}`,
      pix_fmt: 'yuv420p',
      nb_frames: `${frames}`,
      nb_read_frames: `${frames}`,
      'tag:comment': seed,
    });
    t.ok(Math.abs(Number(fields.get('duration')) - frames / options.fps) < 0.001);
    t.equal(complaints(file), '');
  }
});

test('something moves from picture to picture', { skip: without('ffmpeg') }, async (t) => {
  const file = mp4Video({ width: 320, height: 180, seconds: 2, fps: 24, seed });
  const { output } = run('ffmpeg', ['-v', 'error', '-i', 'pipe:0', '-f', 'framehash', '-'], file);
  const hashes = output
    .toString()
    .split('\n')
    .flatMap((line) => (/^\d/.test(line) ? [line.split(',').at(-1)?.trim()] : []));
  t.equal(hashes.length, 48);
  t.ok(hashes.every((hash, index) => index === 0 || hash !== hashes[index - 1]));
});
