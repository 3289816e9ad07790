import { textWeight } from '../wire/text-weight.js';
import { type Answer, wordsOf } from './answer.js';
import { type LookedAt, lookAt } from './media-string.js';
import type { ConversationRequest, UserPart } from './request.js';
import type { Metering } from './stream-rules.js';
import type { Usage } from './usage.js';

export const weightOfToken = 4;
/** Whatever its size: how many tokens a medium is depends on the model. */
export const mediumTokens = 1500;

/** A usage for an answer whose upstream reported none. */
export function estimatedUsage(input: number, output: number): Usage {
  return { input, output, cached: 0, cacheWritten: 0, reasoning: 0, estimated: true };
}

/**
 * Estimates the input tokens of a request by the length of its body. It is done for every call, and so must cost next to
 * nothing; `estimateTokens` looks at all of a request, for clients that ask for the number.
 * @param bytes of the body as it is sent
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

/** A body is looked at in so many places, of so many bytes each. */
const samples = 16;
const sampleBytes = 64;
/** Smaller bodies hold no media to speak of. */
const leastWithMedia = 32 * 1024;

/**
 * Bytes before a sample in which the beginning of its string is looked for, which cost some 10 µs, where the sample before
 * it is in base64 as well: without a quote there both are in one string.
 */
const longestWayBack = 512 * 1024;
/** The most bytes of a string that is in base64 that stand before its base64: the head of a `data:` URL. */
const longestHead = 256;
const QUOTE = 0x22;
/** A call asks more than once, and would get another number each time. */
const known = new WeakMap<Buffer, number>();

/**
 * The same for a body that was not parsed: where samples of it are in the base64 of a medium, that part counts as media
 * and not as text. It costs next to nothing however large the body is. Nobody knows beforehand where the samples are: a
 * few media in the right places would make a medium of any text.
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
  let ofMedia = 0;
  let media = 0;
  let isMedium = false;
  let isInBase64 = false;
  let last: LookedAt | null = null;
  let before = 0;
  for (let i = 0; i < samples; i++) {
    const at = Math.floor((i + Math.random()) * step);
    const wasInBase64 = isInBase64;
    isInBase64 = isBase64(body, at, at + sampleBytes);
    if (isInBase64) {
      // The sample before it may stand within the head of the string.
      const from = wasInBase64 ? Math.max(before, at - longestWayBack) : Math.max(0, before - longestHead);
      const quote = body.subarray(from, at).lastIndexOf(QUOTE);
      if (quote !== -1) {
        last = lookAt(body, from + quote, last);
        isMedium = last.isMedium;
        if (isMedium) media++;
      }
      if (isMedium) ofMedia++;
    } else isMedium = false;
    before = at;
  }
  return media * mediumTokens + tokensOf((body.length * (samples - ofMedia)) / samples);
}

/** Whether a piece of an answer looks like base64 where it is sampled: a part of a medium. */
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

/** @param weight of a text (`textWeight`), or its bytes where nobody has read it, which come to about the same */
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
 * A usage whose upstream counts no output of an answer that says something: it has left that out, with the input where
 * that is nothing, too.
 * @param input estimated tokens of the request
 * @param output estimated tokens of what the answer says
 */
export function withUncounted(usage: Usage, input: number, output: number): Usage {
  if (usage.output > 0 || output === 0) return usage;
  return { ...usage, input: usage.input > 0 ? usage.input : input, output, estimated: true };
}

/** Who broke an answer off before it was whole; null for a whole one. */
export type BrokenBy = 'client' | 'upstream' | null;

/** What is known of an answer whose upstream did not report its usage, or not all of it. */
interface InexactAnswer {
  readonly brokenBy: BrokenBy;
  /** Some of it was passed on to the client; the gateway's own keep-alives do not count. */
  readonly hasPassed: boolean;
  readonly estimates: Metering['estimates'];
  /** What was reported before it broke off. */
  readonly reported: Usage | null;
  /** Estimated tokens of the request. */
  readonly input: number;
  /** Estimated tokens of what was passed on of the answer. */
  readonly output: number;
}

/**
 * The usage of an answer that was not reported whole. For one that broke off it is what was reported and what has
 * passed; an upstream that failed before any of it passed has used nothing.
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
