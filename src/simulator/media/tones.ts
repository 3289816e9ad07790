import { createHash } from 'node:crypto';

/** Samples a second of all speech: one channel of 16 bits. */
export const sampleRate = 24_000;

const secondsPerWord = 0.25;
const soundingShare = 0.8;
const mostWords = 4096;
const loudness = 8000;
const rampSamples = 120;
const lowestBase = 110;
const baseSteps = 16;
const pitchSteps = 20;

/** What is said: a tone for each word and a gap after it. */
export interface Utterance {
  readonly voice: string;
  /** The pitch of each word, in hertz. */
  readonly pitches: readonly number[];
  readonly samplesPerWord: number;
}

/** East Asian scripts have no spaces: each of their characters counts as a word. */
const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;

/**
 * The tones of a text: the voice decides the lowest pitch, the word how far it is above. A word lasts 0.25 s divided by
 * the speed. No word at all is a silence as long as one; words after the first 4096 are not heard.
 */
export function utter(text: string, voice: string, speed: number): Utterance {
  const base = lowestBase * 2 ** (step(voice, baseSteps) / 12);
  const words = text.match(word)?.slice(0, mostWords) ?? [''];
  return {
    voice,
    pitches: words.map((each) => (each === '' ? 0 : base * 2 ** (step(each, pitchSteps) / 12))),
    samplesPerWord: Math.round((sampleRate * secondsPerWord) / speed),
  };
}

/** Samples that the utterance lasts. */
export function sampleCount({ pitches, samplesPerWord }: Utterance): number {
  return pitches.length * samplesPerWord;
}

/** So many samples of the utterance, from one on. */
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
