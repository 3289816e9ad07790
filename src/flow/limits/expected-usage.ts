import type { Price, Target } from '../../config/types.js';
import { withoutCarried } from '../../conversation/carried-tokens.js';
import {
  bodyEstimate,
  bytesOfSpokenSecond,
  estimatedUsage,
  mediumTokens,
  mostImageTokens,
  ofImages,
  tokensOf,
  withSound,
} from '../../conversation/estimate-usage.js';
import { noParts, type Usage, withCharges } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { bodyOutputLimit, type OutputLimit } from '../../protocols/endpoint.js';
import { textEndpoints } from '../../protocols/text.js';
import type { OutputSpans } from '../../schema/accept.js';
import { hasTokenRate, isOfTokensOnly } from '../../usage/cost.js';
import { CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/bytes.js';
import { codePoints } from '../../wire/code-points.js';
import { wholeNumber } from '../../wire/json-numbers.js';
import { findValues, type Span } from '../../wire/json-scan.js';
import { endOfValue, mostDepth, skipSpace } from '../../wire/json-skip.js';
import { usualRate } from '../../wire/recording.js';
import type { Call, ResolvedCall } from '../call.js';

/*
 * Estimates the usage of a call by its request. Its limits and budgets are charged the estimate until the upstream has
 * reported the usage.
 */

/** Output tokens of a call that sets no limit. */
const presumedOutput = 1000;
/** Seconds of a recording whose length is not announced. */
const presumedSeconds = 60;

/** Returns the tokens that a call is expected to use, input and output together. */
export function expectedTokens(call: Call): number {
  return expectedInput(call) + expectedOutput(call);
}

/** Returns input and output apart, since their prices differ. */
export function expectedUsage(call: Call): Usage {
  const usage = estimatedUsage(expectedInput(call), expectedOutput(call));
  return makesPricedImages(call) ? ofImages(usage) : usage;
}

/** Whether a call is for images that are charged by their tokens. The upstreams of others rarely report any. */
function makesPricedImages({ route, model }: Call): boolean {
  return route?.endpoint?.metering.unreported === 'image' && (model?.price?.rates.imageOutput ?? 0) > 0;
}

/** Smaller bodies have no tokens worth a search. */
const leastWithTokens = 4 * 1024;

/**
 * Estimates the input by the length of the body, without what its client carries for the upstream. Done once for a call: a
 * limit and a budget each ask, and all of a body may have to be read.
 */
function expectedInput(call: Call): number {
  const { body, route, upload, model } = call;
  if (body === null || route?.endpoint == null) return 0;
  if (upload !== null) return makesPricedImages(call) ? mediumTokens : 0;
  if (body.length < leastWithTokens) return bodyEstimate(body) + call.repeatedTokens;
  if (call.estimated?.bytes === body.length) return call.estimated.input;
  const carried = withoutCarried(body, model === null || model.targets.some(takesUnsigned));
  const input = bodyEstimate(carried) + call.repeatedTokens;
  call.estimated = { bytes: body.length, input };
  return input;
}

/** Whether a target may get reasoning that no vendor has signed. */
function takesUnsigned({ translatesTo }: Target): boolean {
  return translatesTo !== null && textEndpoints[translatesTo].translation.takesUnsigned;
}

/** The expected usage of everything that has a price. */
export interface Expected {
  readonly usage: Usage;
  readonly seconds: number;
  /** Of a text that is to be spoken. */
  readonly characters: number;
}

export function expectedOf(call: ResolvedCall): Expected {
  const usage = expectedUsage(call);
  const seconds = expectedSeconds(call);
  const kind = call.route.endpoint?.metering.unreported ?? null;
  const isOfSound = kind !== null && kind !== 'image' && seconds > 0;
  const { characters } = call;
  return {
    usage: isOfSound && isOfTokensOnly(call.model.price) ? withSound(usage, kind, seconds) : usage,
    seconds,
    characters,
  };
}

/**
 * Returns the expected usage of a session before its first response or transcript reports any: nothing is known beforehand.
 */
export function expectedOfSession({ model }: ResolvedCall): Expected {
  const output = Math.min(presumedOutput, model.tokens.output ?? presumedOutput);
  const parts = { ...noParts, audioOutput: output };
  return {
    usage: withCharges(estimatedUsage(0, output), { parts }),
    seconds: presumedSeconds,
    characters: 0,
  };
}

/** Returns as many tokens as the request lets the upstream generate. */
function expectedOutput(call: Call): number {
  if (makesPricedImages(call)) return call.units * mostImageTokens(call.made);
  const { body, route, upload, validated, model } = call;
  const limit = route?.endpoint?.outputLimit ?? null;
  if (body === null || upload !== null || limit === null) return 0;
  return outputTokens(body, limit, {
    noted: validated?.output ?? null,
    most: model?.tokens.output ?? Number.POSITIVE_INFINITY,
  });
}

/** Whether a member of the body limits the output. */
export function limitsOutput({ body, validated }: Call): boolean {
  return body !== null && largest(body, validated?.output?.maxTokens ?? []) !== null;
}

/** Returns the seconds of audio or video that a call is expected to have. */
function expectedSeconds({ mediaSeconds, route, body, upload, exchange }: Call): number {
  if (mediaSeconds > 0 || route?.endpoint?.metering.seconds == null) return mediaSeconds;
  if (upload === null) {
    const spoken = body === null ? null : spokenText(body);
    return spoken === null ? 0 : (spoken.end - spoken.start) / bytesOfSpokenSecond;
  }
  const { contentLength } = exchange.head;
  return contentLength > 0 ? contentLength / usualRate : presumedSeconds;
}

/** Returns where the text that is to be spoken stands in a body, with its quotes: all of the body if that is unclear. */
function spokenText(body: Buffer): Span {
  return memberOf(body, 'input') ?? { start: 0, end: body.length };
}

/** Returns the place of a member's value, or null if the member is missing or occurs twice. */
function memberOf(body: Buffer, name: string): Span | null {
  return membersOf(body, [name])[0] ?? null;
}

/** Returns the places of the members' values; none if one of them occurs twice. */
function membersOf(body: Buffer, names: readonly string[]): readonly (Span | null)[] {
  try {
    return findValues(body, skipSpace(body, 0), names);
  } catch (fault) {
    if (fault instanceof GatewayError) return [];
    throw fault;
  }
}

/** No reranker takes more in one request (https://docs.voyageai.com/docs/reranker). */
const mostRepeated = 600_000;

/**
 * Sets the units of a call, and the tokens of what its upstream reads repeatedly, to the numbers that its request lets
 * expect, which may be charged for a call that its client leaves.
 */
export function presumeUnits(call: ResolvedCall): void {
  const { body, route } = call;
  const list = route.endpoint?.countedList ?? null;
  if (body === null || list === null) return;
  const [counted = null, repeated = null] = membersOf(body, [list.name, list.repeated]);
  const count = elementsAt(body, counted);
  call.units = Math.max(1, Math.ceil(count / list.perUnit));
  const { rates = null } = call.model.price ?? {};
  if (repeated === null || rates === null || !hasTokenRate(rates) || count === 0) return;
  const tokens = tokensOf(repeated.end - repeated.start);
  call.repeatedTokens = Math.min(mostRepeated, (count - 1) * tokens);
}

/**
 * Counts the characters of a call whose text is to be spoken, as vendors do: code points, spaces and line ends among them
 * (https://learn.microsoft.com/azure/ai-services/speech-service/text-to-speech#billable-characters). No answer reports them.
 */
export function countCharacters(call: ResolvedCall): void {
  const { body, route } = call;
  if (body === null || route.endpoint?.metering.unreported !== 'sound') return;
  const { start, end } = spokenText(body);
  const quotes = body[start] === QUOTE ? 1 : 0;
  call.characters = codePoints(body, start + quotes, end - quotes);
}

/**
 * Sets the seconds of a call to the expected number, if seconds have a price for its client or for the operator, or tokens
 * are estimated by them. The answer may not report them, for instance a transcript in plain text or audio in an unknown format.
 */
export function presumeSeconds(call: ResolvedCall): void {
  const { price, targets } = call.model;
  const isNeeded = hasSecondRate(price) || isOfTokensOnly(price);
  if (isNeeded || targets.some(({ cost }) => hasSecondRate(cost))) call.mediaSeconds = expectedSeconds(call);
}

function hasSecondRate(price: Price | null): boolean {
  return price !== null && price.rates.perSecond > 0;
}

interface KnownOutput {
  /** What the validation of the body has found, or null. */
  readonly noted: OutputSpans | null;
  /** The model's largest output. A call with a huge limit reserves no more of a budget than this. */
  readonly most: number;
}

function outputTokens(body: Buffer, limit: OutputLimit, { noted, most }: KnownOutput): number {
  const ofOne = (spans: readonly (Span | null)[]): number =>
    Math.min(most, largest(body, spans) ?? presumedOutput);
  try {
    if (limit === bodyOutputLimit && noted !== null)
      return ofOne(noted.maxTokens) * (numberAt(body, noted.choices) ?? 1);
    const from = limit.within === null ? skipSpace(body, 0) : objectAt(body, limit.within, noted);
    if (from === -1) return presumedOutput;
    const { choices, fields, each } = limit;
    const spans = findValues(body, from, [...fields, ...choices, each ?? '']);
    const tokens = ofOne(spans.slice(0, fields.length));
    const answers = largest(body, spans.slice(fields.length, -1)) ?? 1;
    return tokens * answers * (each === null ? 1 : elementsAt(body, spans.at(-1) ?? null));
  } catch (fault) {
    // The member occurs twice. The reported usage will show what was used.
    if (fault instanceof GatewayError) return presumedOutput;
    throw fault;
  }
}

/** Returns where an object of the body begins, under any of its names; -1 if there is none. */
function objectAt(body: Buffer, names: readonly string[], noted: OutputSpans | null): number {
  const span =
    noted === null ? findValues(body, skipSpace(body, 0), names).find((each) => each !== null) : noted.config;
  return span == null || body[span.start] !== OPEN_BRACE ? -1 : span.start;
}

function largest(body: Buffer, spans: readonly (Span | null)[]): number | null {
  let most: number | null = null;
  for (const span of spans) {
    const value = numberAt(body, span);
    if (value !== null && (most === null || value > most)) most = value;
  }
  return most;
}

/** Counts the strings, lists or objects in a list. Returns 1 for anything else, such as a list of numbers. */
function elementsAt(body: Buffer, span: Span | null): number {
  if (span === null || body[span.start] !== OPEN_BRACKET) return 1;
  const first = body[skipSpace(body, span.start + 1)];
  if (first !== QUOTE && first !== OPEN_BRACKET && first !== OPEN_BRACE) return 1;
  let count = 0;
  for (let at = span.start; at < span.end; count++) {
    at = endOfValue(body, skipSpace(body, at + 1), mostDepth);
    if (at === -1) return Math.max(1, count);
    at = skipSpace(body, at);
    if (body[at] === CLOSE_BRACKET) at = span.end;
  }
  return count;
}

/**
 * Returns a whole number above 0, also one that is written as a string; null for anything else. A number that is too large to
 * be exact is a limit all the same.
 */
export function numberAt(body: Buffer, span: Span | null): number | null {
  if (span === null) return null;
  const inner = body[span.start] === QUOTE ? 1 : 0;
  // Nearly all consist of digits only, for which no string has to be made.
  const digits = inner === 1 ? -1 : wholeNumber(body, span.start);
  const value =
    digits === -1 ? Number(body.toString('latin1', span.start + inner, span.end - inner)) : digits;
  if (value > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}
