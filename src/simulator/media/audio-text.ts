import { readFlac } from './flac.js';
import { isLayer3, layer3Seconds, readTag } from './mp3.js';
import { readWav } from './wav.js';

/** The container, duration and embedded text of an audio file; null if unknown. */
export interface AudioDescription {
  readonly container: 'mp3' | 'wav' | 'flac' | 'mp4' | 'ogg' | 'webm' | 'unknown';
  readonly seconds: number | null;
  readonly text: string | null;
}

/** Describes an audio or video file by its first bytes and comments. Accepts any bytes. */
export function describeAudio(bytes: Buffer): AudioDescription {
  const tag = readTag(bytes);
  const start = (from: number, to: number): string => bytes.toString('latin1', tag.end + from, tag.end + to);
  if (start(0, 4) === 'fLaC') {
    return { container: 'flac', ...readFlac(bytes.subarray(tag.end)) };
  }
  if (tag.end > 0 || isLayer3(bytes, 0)) {
    return { container: 'mp3', seconds: layer3Seconds(bytes, tag.end), text: tag.text };
  }
  if (start(0, 4) === 'RIFF' && start(8, 12) === 'WAVE') {
    return { container: 'wav', ...readWav(bytes) };
  }
  return { container: containerOf(start), seconds: null, text: null };
}

function containerOf(start: (from: number, to: number) => string): AudioDescription['container'] {
  if (start(4, 8) === 'ftyp') {
    return 'mp4';
  }
  if (start(0, 4) === 'OggS') {
    return 'ogg';
  }
  return start(0, 4) === '\x1a\x45\xdf\xa3' ? 'webm' : 'unknown';
}
