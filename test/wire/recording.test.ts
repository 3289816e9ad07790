import { test } from 'tap';
import { asset } from '../../src/simulator/media/assets.js';
import { Recording } from '../../src/wire/recording.js';

const ascii = (text: string) => Buffer.from(text, 'latin1');
const big = (bytes: number, value: number) => {
  const buffer = Buffer.alloc(bytes);
  if (bytes === 8) buffer.writeBigUInt64BE(BigInt(value));
  else buffer.writeUIntBE(value, 0, bytes);
  return buffer;
};
const little = (bytes: number, value: number) => big(bytes, value).reverse();

/** What a file comes to that arrives in pieces of so many bytes. */
function secondsOf(file: Buffer, piece = file.length): number {
  const recording = new Recording();
  for (let at = 0; at < file.length; at += piece) recording.add(file.subarray(at, at + piece));
  return recording.seconds(file.length);
}

const box = (name: string, ...content: Buffer[]) => {
  const inner = Buffer.concat(content);
  return Buffer.concat([big(4, 8 + inner.length), ascii(name), inner]);
};
const movieHeader = (units: number, rate: number) =>
  box('mvhd', Buffer.alloc(12), big(4, rate), big(4, units), Buffer.alloc(80));
const fileType = box('ftyp', ascii('M4A '), Buffer.alloc(4));
const sound = (bytes: number) => Buffer.alloc(bytes, 7);

const page = (position: number, content: Buffer, serial = 0, flags = 0) =>
  Buffer.concat([
    ascii('OggS\0'),
    Buffer.from([flags]),
    little(8, position),
    little(4, serial),
    Buffer.alloc(8),
    Buffer.from([1, content.length]),
    content,
  ]);
const opusHead = Buffer.concat([ascii('OpusHead'), Buffer.alloc(11)]);
const vorbisHead = (rate: number) =>
  Buffer.concat([ascii('\x01vorbis'), Buffer.alloc(5), little(4, rate), Buffer.alloc(14)]);

const element = (name: number, content: Buffer) =>
  Buffer.concat([
    big(name > 0xffffff ? 4 : name > 0xffff ? 3 : 2, name),
    big(4, 0x10000000 + content.length),
    content,
  ]);
const float = (value: number) => {
  const buffer = Buffer.alloc(8);
  buffer.writeDoubleBE(value);
  return buffer;
};
const matroska = (information: Buffer[]) =>
  Buffer.concat([
    element(0x1a45dfa3, Buffer.alloc(20)),
    big(4, 0x18538067),
    Buffer.from('01ffffffffffffff', 'hex'),
    element(0x114d9b74, Buffer.alloc(300)),
    element(0x1549a966, Buffer.concat(information)),
    element(0x1f43b675, sound(60_000)),
  ]);

const samples = (format: {
  tag?: number;
  rate: number;
  channels: number;
  bits: number;
  byteRate?: number;
}) => {
  const { tag = 1, rate, channels, bits, byteRate = (rate * channels * bits) / 8 } = format;
  const block = (channels * bits) / 8;
  return Buffer.concat([
    ...[ascii('fmt '), little(4, 16), little(2, tag), little(2, channels), little(4, rate)],
    ...[little(4, byteRate), little(2, block), little(2, bits)],
  ]);
};
const wave = (...chunks: Buffer[]) => Buffer.concat([ascii('RIFF'), little(4, 0), ascii('WAVE'), ...chunks]);
const data = (bytes: number, said = bytes) => Buffer.concat([ascii('data'), little(4, said), sound(bytes)]);
const stereo = samples({ rate: 48_000, channels: 2, bits: 16 });

const flac = (count: number, rate: number) => {
  const head = Buffer.alloc(42);
  head.write('fLaC', 'latin1');
  head.writeUInt32BE((rate << 12) >>> 0, 18);
  head.writeUInt32BE(count, 22);
  return Buffer.concat([head, sound(60_000)]);
};

const tag = (bytes: number) =>
  Buffer.concat([ascii('ID3\x04\0\0'), Buffer.from([0, 0, bytes >> 7, bytes & 0x7f]), sound(bytes)]);
const speech = asset('speech.mp3');
/** Frames as of the file, and before them one that counts them. */
const counted = (frames: number) => {
  const frame = Buffer.alloc(96);
  speech.copy(frame, 0, 0, 4);
  Buffer.concat([ascii('Info'), big(4, 1), big(4, frames)]).copy(frame, 13);
  return Buffer.concat([frame, sound(60_000)]);
};

const files: readonly (readonly [string, Buffer, number])[] = [
  [
    'M4A with its head first',
    Buffer.concat([fileType, box('moov', movieHeader(20_000, 1000)), box('mdat', sound(60_000))]),
    20,
  ],
  [
    'M4A with its head last',
    Buffer.concat([fileType, box('mdat', sound(60_000)), box('moov', movieHeader(48_000, 1600))]),
    30,
  ],
  ['Opus in Ogg', Buffer.concat([page(0, opusHead), sound(60_000), page(40 * 48_000, sound(9))]), 40],
  [
    'Opus in Ogg of many pages',
    Buffer.concat([
      page(0, opusHead),
      sound(300_000),
      page(9 * 48_000, sound(200_000)),
      page(100 * 48_000, sound(9)),
    ]),
    100,
  ],
  [
    'FLAC in Ogg',
    Buffer.concat([
      page(0, Buffer.concat([ascii('\x7fFLAC'), Buffer.alloc(4), flac(1, 16_000).subarray(0, 42)])),
      ...[sound(60_000), page(20 * 16_000, sound(9))],
    ]),
    20,
  ],
  [
    'Speex in Ogg',
    Buffer.concat([
      page(0, Buffer.concat([ascii('Speex   '), Buffer.alloc(28), little(4, 8000), Buffer.alloc(40)])),
      ...[sound(40_000), page(20 * 8000, sound(9))],
    ]),
    20,
  ],
  ['Vorbis in Ogg', Buffer.concat([page(0, vorbisHead(8000)), sound(90_000), page(160_000, sound(9))]), 20],
  [
    'Ogg of three streams in a chain',
    Buffer.concat([
      ...[page(0, opusHead, 1), sound(30_000), page(20 * 48_000, sound(9), 1)],
      ...[page(0, vorbisHead(8000), 2), page(0, sound(9), 2), sound(30_000), page(10 * 8000, sound(9), 2)],
      ...[page(0, opusHead, 1), sound(30_000), page(5 * 48_000, sound(9), 1)],
    ]),
    35,
  ],
  [
    'Ogg of two streams of the same number in a chain, the second of which repeats its first packet',
    Buffer.concat([
      ...[page(0, opusHead, 1, 2), sound(30_000), page(20 * 48_000, sound(9), 1)],
      ...[page(0, opusHead, 1, 2), sound(30_000), page(10 * 48_000, sound(9), 1)],
      ...[page(10 * 48_000, opusHead, 1), sound(30_000), page(15 * 48_000, sound(9), 1)],
    ]),
    35,
  ],
  [
    'Ogg with two sounds and a picture side by side, of which the second sound is the longest',
    Buffer.concat([
      ...[page(0, ascii('fishead\0'), 9), page(0, opusHead, 1), page(0, vorbisHead(8000), 2)],
      ...[page(15 * 48_000, sound(9), 1), sound(60_000), page(20 * 8000, sound(9), 2)],
      ...[page(2 ** 40, sound(9), 9), page(16 * 48_000, sound(9), 1)],
    ]),
    20,
  ],
  [
    'Ogg with a whole page inside another one, and what looks like one of a later version',
    Buffer.concat([
      ...[page(0, opusHead), page(48_000, page(2 ** 40, sound(9))), sound(60_000)],
      ...[page(2 ** 40, sound(9)).fill(1, 4, 5), page(30 * 48_000, sound(9))],
    ]),
    30,
  ],
  [
    'Ogg of more pages than are read, and of another stream after those',
    Buffer.concat([
      ...[page(0, opusHead), ...Array.from({ length: 17_000 }, (_, i) => page(i * 2000, Buffer.alloc(0)))],
      ...[page(0, opusHead, 1), sound(30_000), page(40 * 48_000, sound(9), 1)],
    ]),
    // The pages up to the 16,384th, and the last one.
    (16_382 * 2000) / 48_000 + 40,
  ],
  [
    'Ogg of more pages than are read, cut within the head of its last one',
    Buffer.concat([
      ...[page(0, opusHead), ...Array.from({ length: 17_000 }, (_, i) => page(i * 2000, Buffer.alloc(0)))],
      ...[page(900 * 48_000, sound(9)), page(901 * 48_000, sound(9)).subarray(0, 20)],
    ]),
    900,
  ],
  [
    'Ogg whose last packet is cut',
    Buffer.concat([
      ...[page(0, opusHead), sound(60_000), page(40 * 48_000, sound(9))],
      ...[page(0, sound(9)).fill(0xff, 6, 14), sound(90)],
    ]),
    40,
  ],
  ['WebM', matroska([element(0x2ad7b1, big(3, 1_000_000)), element(0x4489, float(50_000))]), 50],
  ['FLAC', flac(25 * 16_000, 16_000), 25],
  ['MP3 that counts its frames', Buffer.concat([tag(2000), counted(1000)]), 24],
  ['MP3 that does not', speech, speech.length / 4000],
  ['WAV of much', wave(stereo, data(384_000)), 2],
  [
    'WAV of much with sizes of 64 bits',
    Buffer.concat([
      ...[
        ascii('RF64'),
        little(4, 0xffffffff),
        ascii('WAVE'),
        ascii('ds64'),
        little(4, 28),
        Buffer.alloc(28),
      ],
      ...[stereo, data(384_000, 0xffffffff)],
    ]),
    2,
  ],
  ['WAV in µ-law', wave(samples({ tag: 7, rate: 8000, channels: 1, bits: 8 }), data(80_000)), 10],
  ['WAV in A-law', wave(samples({ tag: 6, rate: 48_000, channels: 2, bits: 8 }), data(960_000)), 10],
  [
    'WAV in ADPCM',
    wave(samples({ tag: 17, rate: 8000, channels: 1, bits: 4, byteRate: 4055 }), data(81_100)),
    20,
  ],
  ...[0x02, 0x11].map((tag): readonly [string, Buffer, number] => [
    `WAV in ADPCM (${tag}) whose head states another byte rate than that of its blocks`,
    wave(
      ...[ascii('fmt '), little(4, 20), little(2, tag), little(2, 1), little(4, 8000), little(4, 16_000)],
      ...[little(2, 1024), little(2, 4), little(2, 2), little(2, 2041), data(1024 * 80)],
    ),
    (2041 * 80) / 8000,
  ]),
  [
    'WAV in GSM, with its number of samples before',
    wave(
      samples({ tag: 49, rate: 8000, channels: 1, bits: 0, byteRate: 1625 }),
      ...[ascii('fact'), little(4, 4), little(4, 160_000)],
      data(32_500),
    ),
    20,
  ],
  [
    'WAV in GSM in two chunks, with text between and after them',
    wave(
      samples({ tag: 49, rate: 8000, channels: 1, bits: 0, byteRate: 1625 }),
      ...[data(16_250), ascii('LIST'), little(4, 9000), sound(9000)],
      ...[data(16_250), ascii('LIST'), little(4, 9000), sound(9000)],
    ),
    20,
  ],
  [
    'WAV in GSM whose end was not known when it was begun',
    wave(samples({ tag: 49, rate: 8000, channels: 1, bits: 0, byteRate: 1625 }), data(32_500, 0xffffffff)),
    20,
  ],
  [
    'WAV of little, with a chunk of text before',
    wave(
      ascii('LIST'),
      little(4, 5),
      sound(6),
      samples({ rate: 8000, channels: 1, bits: 8 }),
      data(80_000, 1),
    ),
    10,
  ],
];

for (const [name, file, seconds] of files) {
  test(`${name}: its seconds are those of its container, however it is cut`, (t) => {
    for (const piece of [file.length, 1, 7, 64, 1000])
      t.ok(Math.abs(secondsOf(file, piece) - seconds) < 1e-6, `${secondsOf(file, piece)}`);
    t.end();
  });
}

test('what says too little or too much is held to the bounds that its size sets', (t) => {
  const moov = (units: number) =>
    Buffer.concat([fileType, box('moov', movieHeader(units, 1)), sound(64_000 - 132)]);
  t.equal(secondsOf(moov(0)), 4);
  t.equal(secondsOf(moov(1)), 4);
  t.equal(secondsOf(moov(0xffffffff)), 128);
  t.equal(secondsOf(flac(1, 0)), secondsOf(sound(60_042)), 'without a rate');
  const webm = matroska([element(0x4489, float(Number.NaN))]);
  t.equal(secondsOf(webm), webm.length / 16_000);
  const endless = Buffer.concat([
    fileType,
    ...Array.from({ length: 8000 }, () => box('free')),
    box('moov', movieHeader(100, 1)),
  ]);
  t.equal(secondsOf(endless), endless.length / 16_000, 'boxes without end are not all looked at');
  t.end();
});

test('a WAV file that contradicts itself, or claims an encoding of more bytes than usual, is one of unknown kind', (t) => {
  const usual = (file: Buffer) => t.equal(secondsOf(file), file.length / 16_000);
  usual(wave(samples({ rate: 48_000, channels: 2, bits: 16, byteRate: 900_000 }), data(64_000)));
  usual(wave(samples({ tag: 85, rate: 48_000, channels: 2, bits: 16 }), data(64_000)));
  usual(wave(samples({ rate: 4_000_000, channels: 2, bits: 16 }), data(64_000)));
  usual(wave(samples({ rate: 8000, channels: 1, bits: 8 }), stereo, data(64_000)));
  usual(wave(samples({ tag: 49, rate: 8000, channels: 1, bits: 0, byteRate: 1625 }), stereo, data(64_000)));
  usual(wave(samples({ tag: 7, rate: 8000, channels: 1, bits: 64 }), data(64_000)));
  usual(wave(stereo, sound(64_000)));
  t.end();
});

test('whatever the bytes are, they come to something between the bounds', (t) => {
  const starts = files.map(([, file]) => file.subarray(0, 400));
  let seed = 7;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let round = 0; round < 3000; round++) {
    const file = Buffer.from(starts[random(starts.length)] ?? sound(1)).subarray(0, 1 + random(400));
    for (let change = random(6); change > 0; change--) file[random(file.length)] = random(256);
    const seconds = secondsOf(file, 1 + random(file.length));
    if (!(seconds >= 0 && seconds <= Math.max(file.length, file.length / 500)))
      t.fail(`${seconds}: ${file.toString('hex')}`);
  }
  t.pass('all were read');
  t.end();
});
