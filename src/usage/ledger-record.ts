import { serviceTiers } from '../conversation/usage.js';
import { outcomes } from '../metrics/call-record.js';

/**
 * How the numbers of tokens are known: the upstream has reported them, they were counted from what was streamed until
 * the call broke off, they are the gateway's guess, or there are none.
 */
export const tokenSources = ['exact', 'partial', 'estimated', 'none'] as const;
export type TokenSource = (typeof tokenSources)[number];

/**
 * Every field of the record of an ended call, as the ledger keeps it, in the order of the columns, and whether a value is
 * what it holds. Sizes are in bytes.
 */
export const recordFields = [
  /** Unix milliseconds, whole: when the call ended. */
  ['at', isTime],
  ['requestId', isText],
  /** Null for a call without a valid key. */
  ['keyId', isTextOrNull],
  /** Those of the key. */
  ['groups', areTexts],
  /** Null for a call that belongs to none. */
  ['protocol', isTextOrNull],
  /** By its name in the config; null where the call named none of them, whatever it named. */
  ['model', isTextOrNull],
  /** Upstream and model there; null when none was asked. */
  ['target', isTextOrNull],
  /** HTTP status of the answer. */
  ['status', isNumber],
  ['outcome', isOneOf(outcomes)],
  /** What tokens include is said at `Usage`; none where nothing was reported. */
  ['inputTokens', isNumber],
  ['outputTokens', isNumber],
  ['cachedTokens', isNumber],
  ['cacheWrittenTokens', isNumber],
  ['reasoningTokens', isNumber],
  /** Which of these tokens are of a kind with a price of its own; see `TokenParts`. */
  ['audioInputTokens', isNumber],
  ['audioOutputTokens', isNumber],
  ['imageInputTokens', isNumber],
  ['imageOutputTokens', isNumber],
  ['cachedAudioTokens', isNumber],
  ['cachedImageTokens', isNumber],
  ['cacheWrittenHourTokens', isNumber],
  /** Of the web. */
  ['searches', isNumber],
  ['tier', isOneOf(serviceTiers)],
  ['tokensKnown', isOneOf(tokenSources)],
  ['bytesIn', isNumber],
  ['bytesOut', isNumber],
  /** Of audio or video. */
  ['mediaSeconds', isNumber],
  /** From the request's head to the end of its answer; kept to the microsecond, as is the next. */
  ['durationMs', isNumber],
  /** From the request's head to that of its upstream's answer, of a session to its first message; null when none came. */
  ['firstByteMs', isNumberOrNull],
  /** Attempts after the first one. */
  ['retries', isNumber],
  /** Images or videos; 1 for any other call, and 0 where it was not served. */
  ['units', isNumber],
  /** What it was charged. */
  ['costNanoUsd', isNumber],
  /** What it has cost whoever runs the gateway; null where that is not known. */
  ['paidNanoUsd', isNumberOrNull],
] as const;

type Held<Fits> = Fits extends (value: unknown) => value is infer Value ? Value : never;

/** The record of an ended call. */
export type LedgerRecord = {
  readonly [Field in (typeof recordFields)[number] as Field[0]]: Held<Field[1]>;
};

/**
 * One line of JSON without its end, for operators. The time is written in the form of ISO 8601.
 * @throws RangeError when the time of the record is none
 */
export function writeRecord(record: LedgerRecord): string {
  return JSON.stringify({ ...record, at: new Date(record.at).toISOString() });
}

/** Something that may have the fields of a record, whatever they hold. */
export type LedgerRecordLike = { readonly [Name in keyof LedgerRecord]?: unknown };

/** Whether each field holds what it should. */
export function isLedgerRecord(value: LedgerRecordLike): value is LedgerRecord {
  return recordFields.every(([name, fits]) => fits(value[name]));
}

/** Whether a calendar has the time, in whole milliseconds since 1970. */
export function isTime(at: unknown): at is number {
  // The last one is in the year 275760.
  return Number.isInteger(at) && (at as number) >= 0 && (at as number) <= 8_640_000_000_000_000;
}

function isNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

function isNumberOrNull(value: unknown): value is number | null {
  return value === null || isNumber(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || isText(value);
}

function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText);
}

function isOneOf<Word extends string>(words: readonly Word[]): (value: unknown) => value is Word {
  return (value): value is Word => words.some((word) => word === value);
}
