import { whole, within } from './bounds.js';
import { idrPicture, parameterSets, predictedPicture } from './h264.js';
import { type Moment, mosaicOf, move, setMoment } from './mosaic.js';
import { mp4File, type Sample } from './mp4-boxes.js';
import { paint } from './painting.js';

const leastPixels = 16;
const mostPixels = 1920;
const mostSeconds = 60;
const mostFrameRate = 60;
const secondsBetweenIdrPictures = 2;
/** Units of the time scale that a frame lasts. */
const frameDuration = 1000;

/**
 * An MP4 (ISO/IEC 14496-12 and -15) with one H.264 constrained baseline track: a mosaic from the seed over which a disc
 * moves while a bar grows. Sizes are 16 to 1920 pixels, odd ones lessened by one; seconds 1 to 60; frames a second 1 to
 * 60. A RangeError tells of others.
 */
export function mp4Video(options: {
  width: number;
  height: number;
  seconds: number;
  fps: number;
  seed: string;
}): Buffer {
  const width = even(whole('width', options.width, leastPixels, mostPixels));
  const height = even(whole('height', options.height, leastPixels, mostPixels));
  const seconds = within('seconds', options.seconds, 1, mostSeconds);
  const rate = within('fps', options.fps, 1, mostFrameRate);
  const timeScale = Math.round(frameDuration * rate);
  return mp4File({
    width,
    height,
    timeScale,
    frameDuration,
    samplesPerChunk: Math.round(rate),
    parameters: parameterSets(width, height, timeScale),
    samples: pictures({ width, height, rate, count: Math.round(seconds * rate), seed: options.seed }),
  });
}

function pictures(options: {
  width: number;
  height: number;
  rate: number;
  count: number;
  seed: string;
}): Sample[] {
  const { width, height, rate, count, seed } = options;
  const mosaic = mosaicOf(paint(seed, width, height));
  const distance = Math.round(secondsBetweenIdrPictures * rate);
  const momentOf = (frame: number): Moment => ({ seconds: frame / rate, progress: (frame + 1) / count });
  const samples: Sample[] = [];
  for (let frame = 0; frame < count; frame++) {
    const sinceIdr = frame % distance;
    if (sinceIdr === 0) {
      setMoment(mosaic, momentOf(frame));
      samples.push({ isSync: true, unit: idrPicture(mosaic, (frame / distance) % 2) });
    } else {
      const changed = move(mosaic, momentOf(frame - 1), momentOf(frame));
      samples.push({ isSync: false, unit: predictedPicture(mosaic, changed, sinceIdr) });
    }
  }
  return samples;
}

function even(value: number): number {
  return value - (value % 2);
}
