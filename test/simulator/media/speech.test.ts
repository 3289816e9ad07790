import { test } from 'tap';
import { asset } from '../../../src/simulator/media/assets.js';
import { describeAudio } from '../../../src/simulator/media/audio-text.js';
import { speech } from '../../../src/simulator/media/speech.js';
import { utter } from '../../../src/simulator/media/tones.js';
import { complaints, probe, run, without } from './programs.js';

const formats = ['mp3', 'wav', 'pcm', 'flac'] as const;
const cases = [
  { text: 'The quick brown fox jumps over the lazy dog', speed: 1, words: 9 },
  { text: 'Grüße, 世界 🙂', speed: 1.7, words: 4 },
  { text: 'one two three', speed: 0.25, words: 3 },
  { text: 'x', speed: 4, words: 1 },
  { text: ' ', speed: 1, words: 1 },
];
const voice = 'alloy';

function whole(options: { text: string; format: (typeof formats)[number]; speed: number; voice?: string }) {
  return Buffer.concat([...speech({ voice, ...options })]);
}

test('a word lasts a quarter of a second by the speed', async (t) => {
  for (const { words, ...options } of cases) {
    const samples = whole({ ...options, format: 'pcm' }).length / 2;
    t.equal(samples, words * Math.round(6000 / options.speed));
  }
});

test('the chunks of a WAV end with the file, and its samples are those of the raw form', async (t) => {
  for (const options of cases) {
    const file = whole({ ...options, format: 'wav' });
    t.equal(file.readUInt32LE(4), file.length - 8);
    const chunks = new Map<string, Buffer>();
    let at = 12;
    while (at < file.length) {
      const size = file.readUInt32LE(at + 4);
      chunks.set(file.toString('latin1', at, at + 4), file.subarray(at + 8, at + 8 + size));
      at += 8 + size + (size % 2);
    }
    t.equal(at, file.length);
    t.strictSame([...chunks.keys()], ['fmt ', 'LIST', 'data']);
    const format = chunks.get('fmt ') ?? Buffer.alloc(0);
    t.strictSame(
      [format.readUInt32LE(0), format.readUInt32LE(4), format.readUInt32LE(8), format.readUInt32LE(12)],
      [0x0001_0001, 24_000, 48_000, 0x0010_0002],
    );
    t.ok(chunks.get('data')?.equals(whole({ ...options, format: 'pcm' })));
  }
});

test('a FLAC is the recording whose length is nearest, and tells its own', async (t) => {
  for (const [words, seconds] of [
    [1, 0.25],
    [4, 1],
    [5, 1],
    [6, 2],
    [33, 8],
    [400, 8],
  ] as const) {
    const text = 'word '.repeat(words);
    const file = whole({ text, speed: 1, format: 'flac' });
    t.strictSame(describeAudio(file), { container: 'flac', seconds, text });
    const recording = asset(`speech-${seconds}.flac`);
    const frames = file.subarray(file.length - recording.length + recordedHead(recording));
    t.ok(frames.equals(recording.subarray(recordedHead(recording))), 'with its frames');
  }
});

/** Bytes of a FLAC before its first frame. */
function recordedHead(file: Buffer): number {
  let at = 4;
  for (let isLast = false; !isLast; ) {
    isLast = file.readUInt8(at) >= 0x80;
    at += 4 + file.readUIntBE(at + 1, 3);
  }
  return at;
}

test('the frames of an MP3 end with the file, and each one stands for itself', async (t) => {
  for (const { words, ...options } of cases) {
    const file = whole({ ...options, format: 'mp3' });
    t.equal(file.toString('latin1', 0, 3), 'ID3');
    let at = 10 + Buffer.from(file.subarray(6, 10)).reduce((size, byte) => size * 128 + byte, 0);
    t.equal(file.toString('latin1', at + 13, at + 17), 'Info');
    const told = { frames: file.readUInt32BE(at + 21), bytes: file.readUInt32BE(at + 25) };
    t.equal(told.bytes, file.length - at);
    let frames = -1;
    for (; at < file.length; at += 96) {
      if (file.readUInt32BE(at) !== 0xfff344c4) t.fail(`header at ${at}`);
      // main_data_begin: nothing of this frame is in the one before, which may be another one than was recorded.
      if (frames >= 0 && file.readUInt8(at + 4) !== 0) t.fail(`bit reservoir at ${at}`);
      frames += 1;
    }
    t.equal(at, file.length);
    t.equal(frames, told.frames);
    t.equal(frames, Math.ceil((words * Math.round(6000 / options.speed)) / 576));
  }
});

test('pieces are small, and come before the end is made', async (t) => {
  const text = 'word '.repeat(4000);
  for (const format of formats) {
    let count = 0;
    for (const piece of speech({ text, voice, format, speed: 0.25 })) {
      count += 1;
      if (piece.length > 32 * 1024) t.fail(`${piece.length} bytes of ${format}`);
      if (count === 5) break;
    }
    t.equal(count, 5);
  }
});

test('the same arguments give the same bytes; voice and words change them', async (t) => {
  for (const format of formats) {
    const options = { text: 'one two', format, speed: 1 };
    t.ok(whole(options).equals(whole(options)));
    t.notOk(whole(options).equals(whole({ ...options, voice: 'nova' })));
    t.notOk(whole(options).equals(whole({ ...options, text: 'one three' })));
  }
});

test('words are silent after the 4096th, and a speed out of bounds is a RangeError', async (t) => {
  t.equal(utter('a '.repeat(5000), voice, 1).pitches.length, 4096);
  for (const speed of [0.24, 4.1, Number.NaN]) {
    t.throws(() => speech({ text: 'x', voice, format: 'pcm', speed }), {
      name: 'RangeError',
      message: /^speed /,
    });
  }
});

test('ffprobe and ffmpeg find nothing to complain of', { skip: without('ffprobe', 'ffmpeg') }, async (t) => {
  for (const { words, ...options } of cases.slice(0, 3)) {
    for (const [format, codec] of [
      ['mp3', 'mp3'],
      ['wav', 'pcm_s16le'],
      ['flac', 'flac'],
    ] as const) {
      const file = whole({ ...options, format });
      const { fields } = probe(file);
      t.match(Object.fromEntries(fields), {
        codec_name: codec,
        sample_rate: '24000',
        channels: '1',
        'tag:comment': options.text,
      });
      const wanted = (0.25 * words) / options.speed;
      const seconds = format === 'flac' ? Number(describeAudio(file).seconds) : wanted;
      t.ok(Math.abs(Number(fields.get('duration')) - seconds) < 0.03);
      t.ok(seconds > wanted / 1.5 && seconds < wanted * 1.5, `${seconds} s`);
      t.equal(complaints(file), '');
    }
  }
});

test('ffmpeg hears tones and gaps in an MP3', { skip: without('ffmpeg') }, async (t) => {
  const options = { text: 'The quick brown fox jumps over the lazy dog', speed: 1 };
  const { output } = run(
    'ffmpeg',
    ['-v', 'error', '-f', 'mp3', '-i', 'pipe:0', '-f', 's16le', '-'],
    whole({ ...options, format: 'mp3' }),
  );
  const heard = new Int16Array(output.buffer.slice(output.byteOffset, output.byteOffset + output.length));
  const loudness: number[] = [];
  for (let at = 0; at + 600 <= heard.length; at += 600) {
    loudness.push(heard.subarray(at, at + 600).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0));
  }
  t.ok(loudness.filter((peak) => peak > 5000).length > loudness.length / 2);
  t.ok(loudness.filter((peak) => peak < 500).length > loudness.length / 20);
});
