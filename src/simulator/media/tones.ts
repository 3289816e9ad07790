import { createHash } from 'node:crypto';

/** Samples a second of all speech: one channel of 16 bits. */
export const sampleRate = 24_000;

const secondsPerWord = 0.25;
const soundingShare = 0.8;
const maxWords = 4096;
const loudness = 8000;
const rampSamples = 120;
const lowestBase = 110;
const baseSteps = 16;
const pitchSteps = 20;

/** An utterance: a tone for each word, with a gap after it. */
export interface Utterance {
  readonly voice: string;
  /** The pitch of each word, in hertz. */
  readonly pitches: readonly number[];
  readonly samplesPerWord: number;
}

/** Each character of East Asian scripts, which have no spaces, counts as a word. */
const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;

/**
 * The tones of a text: the voice determines the lowest pitch, and each word its distance above. A word lasts 0.25 s
 * divided by the speed. A text without words is a silence of one word's length; words after the first 4096 are left
 * out.
 */
export function utter(text: string, voice: string, speed: number): Utterance {
  const base = lowestBase * 2 ** (step(voice, baseSteps) / 12);
  const words = text.match(word)?.slice(0, maxWords) ?? [''];
  return {
    voice,
    pitches: words.map((each) => (each === '' ? 0 : base * 2 ** (step(each, pitchSteps) / 12))),
    samplesPerWord: Math.round((sampleRate * secondsPerWord) / speed),
  };
}

/** Length of the utterance in samples. */
export function sampleCount({ pitches, samplesPerWord }: Utterance): number {
  return pitches.length * samplesPerWord;
}

/** A number of samples of the utterance, starting at `from`. */
export function samplesOf(utterance: Utterance, from: number, count: number): Int16Array {
  const samples = new Int16Array(count);
  const length = Math.floor(utterance.samplesPerWord * soundingShare);
  for (let index = 0; index < count; index++) {
    const within = (from + index) % utterance.samplesPerWord;
    if (within < length) {
      const pitch = utterance.pitches[Math.floor((from + index) / utterance.samplesPerWord)] ?? 0;
      const ramp = Math.min(1, within / rampSamples, (length - within) / rampSamples);
      samples[index] = Math.round(loudness * ramp * Math.sin((2 * Math.PI * pitch * within) / sampleRate));
    }
  }
  return samples;
}

function step(text: string, steps: number): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) % steps;
}
