import { QUOTE } from '../wire/bytes.js';
import { textWeight } from '../wire/text-weight.js';
import { type Answer, wordsOf } from './answer.js';
import { ArgumentPlaces } from './argument-places.js';
import { type ClassifiedString, classifyString } from './media-string.js';
import type { ConversationRequest, UserPart } from './request.js';
import type { Metering } from './stream-rules.js';
import { addMarkedUsage, type MadeMedia, noParts, type Usage, withCharges } from './usage.js';

export const weightOfToken = 4;
/** Tokens of a media file, regardless of its size: the real number depends on the model. */
export const mediumTokens = 1500;

/** Makes the usage of an answer whose upstream reported none. */
export function estimatedUsage(input: number, output: number): Usage {
  return { input, output, cached: 0, cacheWritten: 0, reasoning: 0, estimated: true };
}

/**
 * Estimates the input tokens of a request from the length of its body. Runs for every call and must be cheap.
 * `estimateTokens` is the thorough estimate for clients that ask for the number.
 * @param bytes size of the body as it is sent
 */
export function inputEstimate({ turns }: ConversationRequest, bytes: number): number {
  let text = bytes;
  let tokens = 0;
  const count = (part: UserPart): void => {
    if (part.kind === 'toolResult') for (const each of part.content) count(each);
    else if (part.kind !== 'text') {
      tokens += mediumTokens;
      if (part.source.kind === 'data') text -= part.source.data.length;
    }
  };
  for (const turn of turns) if (turn.role === 'user') for (const part of turn.parts) count(part);
  return tokens + tokensOf(Math.max(0, text));
}

/**
 * Tokens for a second of sound that a model hears, and for one that it makes
 * (https://platform.openai.com/docs/guides/realtime-costs).
 */
const heardTokens = 10;
const spokenTokens = 20;
/** Bytes of text for each second of speech. */
export const bytesOfSpokenSecond = 15;

/** Estimates the seconds of a recording by its tokens, or if none are counted, by what was said in it. */
export function heardSeconds(tokens: number, transcript: string): number {
  return tokens > 0 ? tokens / heardTokens : Buffer.byteLength(transcript) / bytesOfSpokenSecond;
}

/** Replaces the estimated input of a transcript, or the estimated output of a speech, by that of its seconds. */
export function withSound(usage: Usage, kind: 'transcript' | 'sound', seconds: number): Usage {
  if (kind === 'transcript') {
    const input = Math.ceil(seconds * heardTokens);
    return withCharges({ ...usage, input }, { parts: { ...noParts, audioInput: input } });
  }
  const output = Math.ceil(seconds * spokenTokens);
  return withCharges({ ...usage, output }, { parts: { ...noParts, audioOutput: output } });
}

/** Returns a usage whose output is images. */
export function ofImages(usage: Usage): Usage {
  return withCharges(usage, { parts: { ...noParts, imageOutput: usage.output } });
}

/**
 * Output tokens of an image of the usual sizes, with a margin, since the models of a vendor differ
 * (https://platform.openai.com/docs/guides/image-generation#cost-and-latency).
 */
const imageTokens: ReadonlyMap<string, number> = new Map([
  ['low', 450],
  ['medium', 2000],
]);
/** Without a quality, the upstream may choose the dearest. */
const dearestImageTokens = 7500;
/** Pixels of the largest usual size, and how many times as many an image may have. */
const usualPixels = 1536 * 1024;
const mostTimes = 16;

/** Returns the most output tokens that an image is expected to use. Larger ones use more in proportion. */
export function mostImageTokens(requested: MadeMedia | null): number {
  const [width = 0, height = 0] = (requested?.size ?? '').split('x').map(Number);
  const times = Math.min(mostTimes, Math.max(1, (width * height) / usualPixels || 0));
  return Math.ceil((imageTokens.get(requested?.quality ?? '') ?? dearestImageTokens) * times);
}

/** Adds an estimate for images to the usage of others. @param brokenBy null for a whole answer */
export function withMedia(reported: Usage, images: number, brokenBy: BrokenBy): Usage {
  const { estimated: _, ...made } = ofImages(estimatedUsage(0, images * mediumTokens));
  return addMarkedUsage(reported, { ...made, [brokenBy === null ? 'estimated' : 'partial']: true });
}

/** Number of samples of a body, and the bytes of each. */
const samples = 16;
const sampleBytes = 64;
/** Smaller bodies are not sampled: they can hold no media of a relevant size. */
const leastWithMedia = 32 * 1024;

/**
 * How many bytes before a sample are searched for the beginning of its string if the previous sample is base64 too,
 * which takes about 10 µs. Both are in the same string if there is no quote between them.
 */
const longestWayBack = 512 * 1024;
/** Maximum number of bytes before the base64 of a string: the beginning of a `data:` URL. */
const longestHead = 256;
/** Estimates by body: a call asks several times, and each sampling would give another number. */
const known = new WeakMap<Buffer, number>();

/**
 * Estimates the same for a body that was not parsed. Where samples of it are in the base64 of a media file, that part
 * counts as media instead of text. The cost does not depend on the size of the body. The sampled positions are random:
 * if they were predictable, a few media files at the right positions would make a large text count as media.
 */
export function bodyEstimate(body: Buffer): number {
  if (body.length < leastWithMedia) return tokensOf(body.length);
  let tokens = known.get(body);
  if (tokens === undefined) {
    tokens = sampledEstimate(body);
    known.set(body, tokens);
  }
  return tokens;
}

function sampledEstimate(body: Buffer): number {
  const step = (body.length - sampleBytes) / samples;
  const places = new ArgumentPlaces(body);
  let ofMedia = 0;
  let media = 0;
  let isMedium = false;
  let isInBase64 = false;
  let last: ClassifiedString | null = null;
  let before = 0;
  for (let i = 0; i < samples; i++) {
    const at = Math.floor((i + Math.random()) * step);
    const wasInBase64 = isInBase64;
    isInBase64 = isBase64(body, at, at + sampleBytes);
    if (isInBase64) {
      // The previous sample may be in the beginning of the same string.
      const from = wasInBase64 ? Math.max(before, at - longestWayBack) : Math.max(0, before - longestHead);
      const quote = body.subarray(from, at).lastIndexOf(QUOTE);
      if (quote !== -1) {
        last = classifyString(body, from + quote, last, places);
        isMedium = last.isMedium;
        if (isMedium) media++;
      }
      if (isMedium) ofMedia++;
    } else isMedium = false;
    before = at;
  }
  return media * mediumTokens + tokensOf((body.length * (samples - ofMedia)) / samples);
}

/** Returns whether a piece of an answer is part of a media file: whether a sample of it looks like base64. */
export function isOfMedium(piece: Buffer): boolean {
  const middle = Math.floor(Math.max(0, piece.length - sampleBytes) / 2);
  return isBase64(piece, middle, Math.min(piece.length, middle + sampleBytes));
}

const base64Bytes = new Uint8Array(256);
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-')
  base64Bytes[character.charCodeAt(0)] = 1;

function isBase64(body: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (base64Bytes[body[at] as number] === 0) return false;
  return true;
}

/**
 * Converts the weight of a text to tokens.
 * @param weight its `textWeight`, or its bytes if it was not read, which are about the same
 */
export function tokensOf(weight: number): number {
  return Math.ceil(weight / weightOfToken);
}

/** Estimates the output tokens of a whole answer. */
export function answerTokens({ choices }: Answer): number {
  let weight = 0;
  for (const { parts } of choices) for (const part of parts) weight += textWeight(wordsOf(part));
  return tokensOf(weight);
}

/**
 * Fills in the output of a usage that reports none for an answer with content, and the input of one that reports none
 * for an answer with output.
 * @param input estimated tokens of the request
 * @param output estimated tokens of the answer
 */
export function withUncounted(usage: Usage, input: number, output: number): Usage {
  const told = usage.output > 0 ? usage.output : output;
  if (told === 0 || (usage.input > 0 && usage.output > 0)) return usage;
  return { ...withEstimatedInput(usage, input), output: told, estimated: true };
}

/** Fills in the input of a usage that reports none: at least what it says of the cache. @param input estimated tokens */
export function withEstimatedInput(usage: Usage, input: number): Usage {
  if (usage.input > 0) return usage;
  return { ...usage, input: Math.max(input, usage.cached + usage.cacheWritten), estimated: true };
}

/** Who broke off an answer. Null for a complete one. */
export type BrokenBy = 'client' | 'upstream' | null;

/** What is known of an answer whose usage was not, or not fully, reported. */
interface InexactAnswer {
  readonly brokenBy: BrokenBy;
  /** Whether any of it was sent to the client, apart from the gateway's own keep-alives. */
  readonly hasPassed: boolean;
  readonly estimates: Metering['estimates'];
  /** Usage reported before it broke off. */
  readonly reported: Usage | null;
  /** Estimated tokens of the request. */
  readonly input: number;
  /** Estimated tokens of the part that was sent. */
  readonly output: number;
}

/**
 * Returns the usage of an answer that was not fully reported. If the answer broke off, that is what was reported and
 * what was sent. An upstream that failed before anything was sent has used nothing.
 */
export function inexactUsage(answer: InexactAnswer): Usage | null {
  const { brokenBy, hasPassed, estimates, reported, input, output } = answer;
  if (estimates === 'none') return reported;
  if (brokenBy === 'upstream' && !hasPassed) return null;
  const answered = estimates === 'conversation' ? output : 0;
  if (brokenBy === null) return reported ?? estimatedUsage(input, answered);
  if (reported !== null) return { ...reported, output: Math.max(reported.output, answered), partial: true };
  return { input, output: answered, cached: 0, cacheWritten: 0, reasoning: 0, partial: true };
}
