import { asset, nearestSize } from './assets.js';
import { whole, within } from './bounds.js';

const leastPixels = 16;
const maxPixels = 1920;
const maxSeconds = 60;
const maxFrameRate = 60;
/** Duration of a frame in units of the time scale. */
const frameDuration = 1000;
const sequenceSet = 7;
const pictureSet = 8;
const idrSlice = 5;
const startCode = Buffer.from([0, 0, 1]);

/**
 * An MP4 (ISO/IEC 14496-12 and -15) with one H.264 track of exactly this length and rate: the repeated frames of the
 * recording with the nearest size, and the seed as comment.
 * @throws RangeError outside sizes of 16 to 1920 pixels, 1 to 60 seconds, and 1 to 60 frames per second
 */
export function mp4Video(options: {
  width: number;
  height: number;
  seconds: number;
  fps: number;
  seed: string;
}): Buffer {
  const wantedWidth = whole('width', options.width, leastPixels, maxPixels);
  const wantedHeight = whole('height', options.height, leastPixels, maxPixels);
  const seconds = within('seconds', options.seconds, 1, maxSeconds);
  const rate = within('fps', options.fps, 1, maxFrameRate);
  const { width, height } = nearestSize(wantedWidth, wantedHeight);
  const { sequence, picture, frames } = readRecording(asset(`video-${width}x${height}.h264`));
  return mp4File({
    width,
    height,
    timeScale: Math.round(frameDuration * rate),
    frameDuration,
    samplesPerChunk: Math.round(rate),
    parameters: { sequence, picture },
    samples: Array.from(
      { length: Math.round(seconds * rate) },
      (_, index) => frames[index % frames.length] as Sample,
    ),
    comment: options.seed,
  });
}

/** The NAL units of a byte stream (ITU-T H.264, annex B) with one unit per picture. */
function readRecording(stream: Buffer): ParameterSets & { readonly frames: readonly Sample[] } {
  const sets = new Map<number, Buffer>();
  const frames: Sample[] = [];
  for (let at = stream.indexOf(startCode); at >= 0; ) {
    const next = stream.indexOf(startCode, at + startCode.length);
    const padded = stream.subarray(at + startCode.length, next < 0 ? stream.length : next);
    // A start code may be preceded by a zero byte.
    const unit = padded.at(-1) === 0 ? padded.subarray(0, -1) : padded;
    const type = (unit[0] ?? 0) & 0x1f;
    if (type === sequenceSet || type === pictureSet) {
      sets.set(type, unit);
    } else {
      frames.push({ isSync: type === idrSlice, unit });
    }
    at = next;
  }
  const none = Buffer.alloc(0);
  return { sequence: sets.get(sequenceSet) ?? none, picture: sets.get(pictureSet) ?? none, frames };
}

/** The parameter sets for a decoder: NAL units without start codes or lengths. */
interface ParameterSets {
  readonly sequence: Buffer;
  readonly picture: Buffer;
}

/** A picture of the track: one NAL unit, without its length. */
interface Sample {
  readonly isSync: boolean;
  readonly unit: Buffer;
}

/** A track of pictures with the same duration. */
interface Track {
  readonly width: number;
  readonly height: number;
  /** Units of time per second. */
  readonly timeScale: number;
  /** Units of time per picture. */
  readonly frameDuration: number;
  readonly samplesPerChunk: number;
  readonly parameters: ParameterSets;
  readonly samples: readonly Sample[];
  readonly comment: string;
}

const lengthSize = 4;
const resolution = 72 << 16;
const one = 1 << 16;
const matrix = [one, 0, 0, 0, one, 0, 0, 0, 1 << 30];
const undetermined = 0x55c4;
const trackEnabledAndShown = 3;
const sameFile = 1;
const wellKnownUtf8 = 1;

/** The file of a track, with its index before its pictures, so that it plays while it loads. */
function mp4File(track: Track): Buffer {
  const sizes = track.samples.map(({ unit }) => lengthSize + unit.length);
  const type = box('ftyp', text('isom'), words(0x200), text('isomiso2avc1mp41'));
  const indexSize = movie(track, sizes, 0).length;
  const start = type.length + indexSize + 8;
  const parts = [type, movie(track, sizes, start), words(8 + sum(sizes)), text('mdat')];
  for (const { unit } of track.samples) {
    parts.push(words(unit.length), unit);
  }
  return Buffer.concat(parts);
}

function movie(track: Track, sizes: readonly number[], start: number): Buffer {
  const { timeScale } = track;
  const duration = track.frameDuration * track.samples.length;
  const header = words(0, 0, timeScale, duration, one, one << 8, 0, 0, ...matrix, 0, 0, 0, 0, 0, 0, 2);
  const trackHeader = words(
    ...[0, 0, 1, 0, duration, 0, 0, 0, 0],
    ...matrix,
    track.width * one,
    track.height * one,
  );
  return box(
    'moov',
    fullBox('mvhd', 0, header),
    box(
      'trak',
      fullBox('tkhd', trackEnabledAndShown, trackHeader),
      box(
        'mdia',
        fullBox('mdhd', 0, words(0, 0, timeScale, duration), halves(undetermined, 0)),
        fullBox('hdlr', 0, words(0), text('vide'), words(0, 0, 0), text('VideoHandler\0')),
        box(
          'minf',
          fullBox('vmhd', 1, halves(0, 0, 0, 0)),
          box('dinf', fullBox('dref', 0, words(1), fullBox('url ', sameFile))),
          sampleTable(track, sizes, start),
        ),
      ),
    ),
    box('udta', commentBox(track.comment)),
  );
}

/** A comment in the place where iTunes and ffprobe look for it. */
function commentBox(comment: string): Buffer {
  const value = box('data', words(wellKnownUtf8, 0), Buffer.from(comment));
  return fullBox(
    'meta',
    0,
    fullBox('hdlr', 0, words(0), text('mdirappl'), words(0, 0), Buffer.alloc(1)),
    box('ilst', box('\xa9cmt', value)),
  );
}

function sampleTable(track: Track, sizes: readonly number[], start: number): Buffer {
  const { samples, samplesPerChunk } = track;
  const chunks: number[] = [];
  let offset = start;
  for (const [index, size] of sizes.entries()) {
    if (index % samplesPerChunk === 0) {
      chunks.push(offset);
    }
    offset += size;
  }
  const syncs = samples.flatMap(({ isSync }, index) => (isSync ? [index + 1] : []));
  return box(
    'stbl',
    fullBox('stsd', 0, words(1), sampleEntry(track)),
    fullBox('stts', 0, words(1, samples.length, track.frameDuration)),
    fullBox('stss', 0, words(syncs.length, ...syncs)),
    fullBox('stsc', 0, chunkRuns(samples.length, samplesPerChunk)),
    fullBox('stsz', 0, words(0, sizes.length, ...sizes)),
    fullBox('stco', 0, words(chunks.length, ...chunks)),
  );
}

/** Runs of chunks with the same number of samples: one run, and a last chunk that may have fewer. */
function chunkRuns(samples: number, samplesPerChunk: number): Buffer {
  const full = Math.floor(samples / samplesPerChunk);
  const rest = samples % samplesPerChunk;
  const runs: number[] = full > 0 ? [1, samplesPerChunk, 1] : [];
  if (rest > 0) {
    runs.push(full + 1, rest, 1);
  }
  return words(runs.length / 3, ...runs);
}

/** The avc1 entry with its AVCDecoderConfigurationRecord (ISO/IEC 14496-15, 5.3.3.1). */
function sampleEntry({ width, height, parameters }: Track): Buffer {
  const { sequence, picture } = parameters;
  const configuration = Buffer.concat([
    Buffer.from([1, ...sequence.subarray(1, 4), 0xfc | (lengthSize - 1), 0xe0 | 1]),
    halves(sequence.length),
    sequence,
    Buffer.from([1]),
    halves(picture.length),
    picture,
  ]);
  return box(
    'avc1',
    halves(0, 0, 0, 1),
    words(0, 0, 0, 0),
    halves(width, height),
    words(resolution, resolution, 0),
    halves(1),
    Buffer.alloc(32),
    halves(0x18, 0xffff),
    box('avcC', configuration),
  );
}

function fullBox(type: string, flags: number, ...content: readonly Buffer[]): Buffer {
  return box(type, words(flags), ...content);
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  return Buffer.concat([words(8 + sum(content.map((part) => part.length))), text(type), ...content]);
}

function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(4 * values.length);
  for (const [index, value] of values.entries()) {
    bytes.writeUInt32BE(value >>> 0, 4 * index);
  }
  return bytes;
}

function halves(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(2 * values.length);
  for (const [index, value] of values.entries()) {
    bytes.writeUInt16BE(value, 2 * index);
  }
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.from(value, 'latin1');
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
