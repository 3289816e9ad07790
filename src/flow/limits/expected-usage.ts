import type { Price } from '../../config/types.js';
import { bodyEstimate, estimatedUsage } from '../../conversation/estimate-usage.js';
import { noParts, type Usage, withCharges } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { bodyOutputLimit, type OutputLimit } from '../../protocols/endpoint.js';
import type { OutputSpans } from '../../schema/accept.js';
import { wholeNumber } from '../../wire/json-numbers.js';
import { findValues, type Span } from '../../wire/json-scan.js';
import { endOfValue, mostDepth, skipSpace } from '../../wire/json-skip.js';
import { usualRate } from '../../wire/recording.js';
import type { Call, ResolvedCall } from '../call.js';

/*
 * What a call is expected to use, by what its request says: for as much its limits and budgets are charged until the
 * upstream has told what it has used.
 */

/** Tokens of output of a call that sets no limit to them. */
const presumedOutput = 1000;
const openBrace = 0x7b;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const quote = 0x22;
/** Bytes of a text for each second in which it is spoken. */
const bytesOfSpokenSecond = 15;
/** Seconds of a recording whose length is not announced. */
const presumedSeconds = 60;

/** The tokens that a call is expected to use, input and output together. */
export function expectedTokens(call: Call): number {
  return expectedInput(call) + expectedOutput(call);
}

/** The same, input and output apart, since their prices differ. */
export function expectedUsage(call: Call): Usage {
  return estimatedUsage(expectedInput(call), expectedOutput(call));
}

/** Estimated by the length of the body. */
function expectedInput({ body, route, upload }: Call): number {
  return body === null || upload !== null || route?.endpoint == null ? 0 : bodyEstimate(body);
}

/** What a call is expected to use of what has a price. */
export interface Expected {
  readonly usage: Usage;
  readonly seconds: number;
}

export function expectedOf(call: Call): Expected {
  return { usage: expectedUsage(call), seconds: expectedSeconds(call) };
}

/** The same of a session, till its first response, or transcript, has told: nothing of it is known beforehand. */
export function expectedOfSession({ model }: ResolvedCall): Expected {
  const output = Math.min(presumedOutput, model.tokens.output ?? presumedOutput);
  const parts = { ...noParts, audioOutput: output };
  return { usage: withCharges(estimatedUsage(0, output), { parts }), seconds: presumedSeconds };
}

/** As much as the request lets the upstream answer. */
function expectedOutput({ body, route, upload, validated, model }: Call): number {
  const limit = route?.endpoint?.outputLimit ?? null;
  if (body === null || upload !== null || limit === null) return 0;
  return outputTokens(body, limit, {
    noted: validated?.output ?? null,
    most: model?.tokens.output ?? Number.POSITIVE_INFINITY,
  });
}

/** Whether a call says how much its upstream may answer at most, in a member of its body. */
export function limitsOutput({ body, validated }: Call): boolean {
  return body !== null && largest(body, validated?.output?.maxTokens ?? []) !== null;
}

/** The seconds of audio or video that a call is expected to have. */
export function expectedSeconds({ mediaSeconds, route, body, upload, exchange }: Call): number {
  if (mediaSeconds > 0 || route?.endpoint?.metering.seconds == null) return mediaSeconds;
  if (upload === null) return body === null ? 0 : spokenBytes(body) / bytesOfSpokenSecond;
  const { contentLength } = exchange.head;
  return contentLength > 0 ? contentLength / usualRate : presumedSeconds;
}

function spokenBytes(body: Buffer): number {
  try {
    const [input = null] = findValues(body, skipSpace(body, 0), ['input']);
    return input === null ? body.length : input.end - input.start;
  } catch (fault) {
    if (fault instanceof GatewayError) return body.length;
    throw fault;
  }
}

/**
 * Sets the seconds of a call to those that are expected, where seconds have a price for its client or for the operator:
 * the answer may not tell them, as a transcript in plain text or a sound of an unknown format.
 */
export function presumeSeconds(call: ResolvedCall): void {
  const { price, targets } = call.model;
  if (hasSecondRate(price) || targets.some(({ cost }) => hasSecondRate(cost)))
    call.mediaSeconds = expectedSeconds(call);
}

function hasSecondRate(price: Price | null): boolean {
  return price !== null && price.rates.perSecond > 0;
}

interface KnownOutput {
  /** What the check of the body has seen, or null. */
  readonly noted: OutputSpans | null;
  /** Tokens that the model gives in one answer, whatever limit it is told: a huge one takes no more of a budget. */
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
    // A key that stands twice: what is used in the end will tell.
    if (fault instanceof GatewayError) return presumedOutput;
    throw fault;
  }
}

/** Where an object of the body begins, by any of its names; -1 where there is none. */
function objectAt(body: Buffer, names: readonly string[], noted: OutputSpans | null): number {
  const span =
    noted === null ? findValues(body, skipSpace(body, 0), names).find((each) => each !== null) : noted.config;
  return span == null || body[span.start] !== openBrace ? -1 : span.start;
}

function largest(body: Buffer, spans: readonly (Span | null)[]): number | null {
  let most: number | null = null;
  for (const span of spans) {
    const value = numberAt(body, span);
    if (value !== null && (most === null || value > most)) most = value;
  }
  return most;
}

/** Texts or lists in a list; 1 for what is none, as a list of numbers is none. */
function elementsAt(body: Buffer, span: Span | null): number {
  if (span === null || body[span.start] !== openBracket) return 1;
  const first = body[skipSpace(body, span.start + 1)];
  if (first !== quote && first !== openBracket) return 1;
  let count = 0;
  for (let at = span.start; at < span.end; count++) {
    at = endOfValue(body, skipSpace(body, at + 1), mostDepth);
    if (at === -1) return Math.max(1, count);
    at = skipSpace(body, at);
    if (body[at] === closeBracket) at = span.end;
  }
  return count;
}

/** A whole number above 0, also one that is written as a text; null for all else. */
function numberAt(body: Buffer, span: Span | null): number | null {
  if (span === null) return null;
  const inner = body[span.start] === quote ? 1 : 0;
  // Nearly all are digits and nothing else, for which no string need be made.
  const digits = inner === 1 ? -1 : wholeNumber(body, span.start);
  const value =
    digits === -1 ? Number(body.toString('latin1', span.start + inner, span.end - inner)) : digits;
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}
