import { test } from 'tap';
import { type AudioDescription, describeAudio } from '../../../src/simulator/media/audio-text.js';
import { mp4Video } from '../../../src/simulator/media/mp4.js';
import { speech } from '../../../src/simulator/media/speech.js';
import { cases, fc } from '../../support/seed.js';
import { run, without } from './programs.js';

const formats = ['mp3', 'wav', 'flac'] as const;
const containers: readonly AudioDescription['container'][] = [
  'mp3',
  'wav',
  'flac',
  'mp4',
  'ogg',
  'webm',
  'unknown',
];

function spoken(text: string, format: (typeof formats)[number]): Buffer {
  return Buffer.concat([...speech({ text, voice: 'nova', format, speed: 4 })]);
}

test('any text comes back from every container that can hold it', async (t) => {
  const text = fc.string({ unit: 'binary', maxLength: 60 }).map((value) => value.replaceAll('\0', ''));
  fc.assert(
    fc.property(text, fc.constantFrom(...formats), (value, format) => {
      const { container, text: found } = describeAudio(spoken(value, format));
      return container === format && found === value;
    }),
  );
  t.pass();
});

test('the length comes back', async (t) => {
  const text = 'one two three four';
  for (const [format, seconds] of [
    ['mp3', 0.264],
    ['wav', 0.25],
    ['flac', 0.25],
  ] as const) {
    const found = describeAudio(spoken(text, format)).seconds ?? 0;
    t.ok(Math.abs(found - seconds) < 1e-9, `${format} ${found}`);
  }
});

test('a WAV whose length nobody wrote lasts as long as its bytes, and a cut MP3 by its bit rate', async (t) => {
  const wav = spoken('one two three four', 'wav');
  wav.writeUInt32LE(0xffffffff, wav.indexOf('data') + 4);
  t.equal(describeAudio(wav).seconds, 0.25);
  const mp3 = spoken('one two three four', 'mp3');
  const second = mp3.indexOf('Info') - 13 + 96;
  t.strictSame(describeAudio(mp3.subarray(second)), { container: 'mp3', seconds: 11 * 0.024, text: null });
});

test('other containers are known by their first bytes', async (t) => {
  const video = mp4Video({ width: 16, height: 16, seconds: 1, fps: 1, seed: '' });
  for (const [bytes, container] of [
    [video, 'mp4'],
    [Buffer.from('OggS\0\x02'), 'ogg'],
    [Buffer.from('1a45dfa3', 'hex'), 'webm'],
    [Buffer.from('text'), 'unknown'],
    [Buffer.alloc(0), 'unknown'],
    [Buffer.from('fff15080', 'hex'), 'unknown'],
  ] as const) {
    t.strictSame(describeAudio(bytes), { container, seconds: null, text: null });
  }
});

test('any bytes are survived, and so is any damage to real files', async (t) => {
  const heads = ['', 'ID3\x04', 'RIFF....WAVE', 'RIFF....WAVELIST', 'fLaC', 'fLaC\x84', '\xff\xf3\x44\xc4'];
  const random = fc
    .tuple(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 300 }))
    .map(([head, rest]) => Buffer.concat([Buffer.from(head, 'latin1'), rest]));
  const files = formats.map((format) => spoken('one two', format).subarray(0, 600));
  const damaged = fc
    .tuple(
      fc.constantFrom(...files),
      fc.array(fc.tuple(fc.nat(120), fc.nat(255)), { maxLength: 6 }),
      fc.nat(600),
    )
    .map(([file, damages, length]) => {
      const copy = Buffer.from(file.subarray(0, length));
      for (const [at, byte] of damages) {
        if (at < copy.length) copy[at] = byte;
      }
      return copy;
    });
  fc.assert(
    fc.property(fc.oneof(random, damaged), (bytes) => {
      const { container, seconds, text } = describeAudio(bytes);
      return (
        containers.includes(container) &&
        (seconds === null || (Number.isFinite(seconds) && seconds >= 0)) &&
        (text === null || typeof text === 'string')
      );
    }),
    { numRuns: cases(1000) },
  );
  t.pass();
});

test('the length of files of other makers is found', { skip: without('ffmpeg') }, async (t) => {
  const source = spoken('one two three four five six seven eight', 'wav');
  for (const [args, container] of [
    [['-f', 'wav'], 'wav'],
    [['-f', 'flac'], 'flac'],
    [['-c:a', 'libmp3lame', '-b:a', '64k', '-f', 'mp3'], 'mp3'],
    [
      ['-c:a', 'libmp3lame', '-b:a', '96k', '-ar', '44100', '-ac', '2', '-write_xing', '0', '-f', 'mp3'],
      'mp3',
    ],
  ] as const) {
    const { output } = run('ffmpeg', ['-v', 'error', '-i', 'pipe:0', ...args, '-'], source);
    const found = describeAudio(output);
    t.equal(found.container, container);
    if (container !== 'flac') t.ok(Math.abs((found.seconds ?? 0) - 0.5) < 0.15, `${found.seconds} s`);
  }
});
