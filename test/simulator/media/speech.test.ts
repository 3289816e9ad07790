import { test } from 'tap';
import { speech } from '../../../src/simulator/media/speech.js';
import { pitchAt, utter } from '../../../src/simulator/media/tones.js';
import { BitReader } from './bit-reader.js';
import { decodeFlac } from './flac-reader.js';
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

test('the frames of a FLAC end with the file and hold the samples of the raw form', async (t) => {
  for (const options of cases) {
    const { total, samples, types } = decodeFlac(whole({ ...options, format: 'flac' }));
    t.strictSame(types, [0, 4]);
    t.equal(total, samples.length);
    t.ok(
      Buffer.from(samples.buffer).equals(whole({ ...options, format: 'pcm' })),
      'little-endian like the raw form',
    );
  }
});

test('the frames of an MP3 end with the file, and each one fits', async (t) => {
  for (const { words, ...options } of cases) {
    const file = whole({ ...options, format: 'mp3' });
    t.equal(file.toString('latin1', 0, 3), 'ID3');
    let at = 10 + Buffer.from(file.subarray(6, 10)).reduce((size, byte) => size * 128 + byte, 0);
    t.equal(file.toString('latin1', at + 13, at + 17), 'Info');
    const told = { frames: file.readUInt32BE(at + 21), bytes: file.readUInt32BE(at + 25) };
    t.equal(told.bytes, file.length - at);
    let frames = -1;
    for (; at < file.length; at += 96) {
      const bits = new BitReader(file.subarray(at, at + 96));
      if (bits.bits(32) !== 0xfff344c4) t.fail(`header at ${at}`);
      const start = bits.bits(9);
      const length = bits.bits(12);
      const bigValues = bits.bits(9);
      if (start !== 0 || bigValues !== 0 || length > 8 * (96 - 4 - 9)) t.fail(`side information at ${at}`);
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
      t.ok(Math.abs(Number(fields.get('duration')) - (0.25 * words) / options.speed) < 0.03);
      t.equal(complaints(file), '');
    }
  }
});

test('ffmpeg hears each word of an MP3 near its pitch, and nothing in the gaps', {
  skip: without('ffmpeg'),
}, async (t) => {
  const { text } = cases[0] ?? { text: '' };
  const options = { text, speed: 0.25 };
  const { output } = run(
    'ffmpeg',
    ['-v', 'error', '-f', 'mp3', '-i', 'pipe:0', '-f', 's16le', '-'],
    whole({ ...options, format: 'mp3' }),
  );
  const heard = new Int16Array(output.buffer.slice(output.byteOffset, output.byteOffset + output.length));
  const utterance = utter(text, voice, options.speed);
  for (const index of utterance.pitches.keys()) {
    const start = index * utterance.samplesPerWord;
    const tone = heard.subarray(start + 4000, start + 4000 + 12_000);
    const pitch = pitchAt(utterance, start + 4000);
    const near = shareNear(tone, pitch);
    t.ok(near > 0.75, `${Math.round(100 * near)} % near ${Math.round(pitch)} Hz`);
    t.ok(energy(tone) / tone.length > 1e6);
    t.ok(energy(heard.subarray(start + 22_000, start + 23_500)) < 1000);
  }
});

function energy(samples: Int16Array): number {
  return samples.reduce((sum, sample) => sum + sample * sample, 0);
}

/** The share of the energy within 25 Hz of a pitch, from the discrete Fourier transform of half a second. */
function shareNear(samples: Int16Array, pitch: number): number {
  let sum = 0;
  for (let hertz = 2 * Math.ceil((pitch - 25) / 2); hertz <= pitch + 25; hertz += 2) {
    let real = 0;
    let imaginary = 0;
    for (const [index, sample] of samples.entries()) {
      const angle = (2 * Math.PI * hertz * index) / 24_000;
      real += sample * Math.cos(angle);
      imaginary += sample * Math.sin(angle);
    }
    sum += (2 * (real * real + imaginary * imaginary)) / samples.length;
  }
  return sum / energy(samples);
}
