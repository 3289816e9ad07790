import { within } from './bounds.js';
import { flacPieces } from './flac.js';
import { mp3Pieces } from './mp3.js';
import { utter } from './tones.js';
import { pcmPieces, wavPieces } from './wav.js';

const slowest = 0.25;
const fastest = 4;

/**
 * Audio that represents a spoken text, in pieces of some KiB: a tone for each word in `wav` and `pcm`, else a recording
 * of the same (`mp3`) or nearly the same length (`flac`). It has one channel of 24 kHz; `pcm` is 16 bits little-endian.
 * All formats except `pcm` contain the text, which `describeAudio` finds.
 * @throws RangeError for a speed outside 0.25 to 4
 */
export function speech(options: {
  text: string;
  voice: string;
  format: 'mp3' | 'wav' | 'pcm' | 'flac';
  speed: number;
}): Iterable<Buffer> {
  const { text } = options;
  const utterance = utter(text, options.voice, within('speed', options.speed, slowest, fastest));
  switch (options.format) {
    case 'mp3':
      return mp3Pieces(utterance, text);
    case 'wav':
      return wavPieces(utterance, text);
    case 'flac':
      return flacPieces(utterance, text);
    case 'pcm':
      return pcmPieces(utterance);
  }
}
