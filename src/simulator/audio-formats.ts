import { createHash } from 'node:crypto';
import { words } from './tokens.js';

const longestSegment = 12;
/** Seconds that the model looks at in one go. */
const window = 30;

/** A word of a transcript; times in seconds. */
export interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** A stretch of a transcript that is shown at once; times in seconds. */
export interface Segment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The words of a text, spread over so many seconds by their lengths. */
export function spreadWords(text: string, seconds: number): Word[] {
  const found = words(text);
  const length = Math.max(1, text.length);
  let before = 0;
  return found.map((piece) => {
    const start = before;
    before += piece.length;
    return {
      word: piece.trim(),
      start: rounded((start / length) * seconds),
      end: rounded((before / length) * seconds),
    };
  });
}

/** The sentences of a text, long ones cut, spread over so many seconds. */
export function spreadSegments(text: string, seconds: number): Segment[] {
  const segments: Segment[] = [];
  let open: Word[] = [];
  for (const word of spreadWords(text, seconds)) {
    open.push(word);
    if (open.length === longestSegment || /[.!?]$/.test(word.word)) {
      segments.push(segmentOf(open));
      open = [];
    }
  }
  return open.length === 0 ? segments : [...segments, segmentOf(open)];
}

function segmentOf(found: readonly Word[]): Segment {
  const text = found.map(({ word }) => word).join(' ');
  return { start: found[0]?.start ?? 0, end: found.at(-1)?.end ?? 0, text };
}

/** A segment with all that `verbose_json` says of it. */
export function verboseSegment(segment: Segment, id: number, temperature: number): object {
  return {
    id,
    seek: Math.floor(segment.start / window) * window * 100,
    start: segment.start,
    end: segment.end,
    text: ` ${segment.text}`,
    tokens: words(segment.text).map(tokenOf),
    temperature,
    avg_logprob: -0.25,
    compression_ratio: 1.2,
    no_speech_prob: 0.01,
  };
}

function tokenOf(word: string): number {
  return createHash('sha256').update(word).digest().readUInt16BE(0) % 50_000;
}

/** Subtitles as SubRip has them. */
export function srt(segments: readonly Segment[]): string {
  return segments
    .map(
      ({ start, end, text }, index) =>
        `${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${text}\n\n`,
    )
    .join('');
}

/** Subtitles in WebVTT. */
export function vtt(segments: readonly Segment[]): string {
  const cues = segments.map(
    ({ start, end, text }) => `${clock(start, '.')} --> ${clock(end, '.')}\n${text}\n\n`,
  );
  return `WEBVTT\n\n${cues.join('')}`;
}

function clock(seconds: number, point: string): string {
  const ms = Math.round(seconds * 1000);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const fraction = String(ms % 1000).padStart(3, '0');
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}${point}${fraction}`;
}

function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
