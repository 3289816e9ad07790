import { serviceTiers } from '../conversation/usage.js';
import { outcomes } from '../metrics/call-record.js';

/**
 * Where token counts are from: reported by the upstream, counted from what was streamed until the call broke off,
 * estimated by the gateway, or none.
 */
export const tokenSources = ['exact', 'partial', 'estimated', 'none'] as const;
export type TokenSource = (typeof tokenSources)[number];

/**
 * Every field of an ended call's record in the ledger, in the order of columns, with the check of its values. Sizes are
 * in bytes.
 */
export const recordFields = [
  /** End of the call in whole Unix milliseconds. */
  ['at', isTime],
  ['requestId', isText],
  /** Null for a call without a valid key. */
  ['keyId', isTextOrNull],
  /** The groups of the key. */
  ['groups', areTexts],
  /** Null for a call without a protocol. */
  ['protocol', isTextOrNull],
  /** The model's name in the config; null if the call named no model of the config. */
  ['model', isTextOrNull],
  /** Upstream and its model; null if the call was sent to none. */
  ['target', isTextOrNull],
  /** HTTP status of the answer. */
  ['status', isNumber],
  ['outcome', isOneOf(outcomes)],
  /** See `Usage` for what tokens include; 0 if nothing was reported. */
  ['inputTokens', isNumber],
  ['outputTokens', isNumber],
  ['cachedTokens', isNumber],
  ['cacheWrittenTokens', isNumber],
  ['reasoningTokens', isNumber],
  /** Tokens among these of kinds with a price of their own; see `TokenParts`. */
  ['audioInputTokens', isNumber],
  ['audioOutputTokens', isNumber],
  ['imageInputTokens', isNumber],
  ['imageOutputTokens', isNumber],
  ['cachedAudioTokens', isNumber],
  ['cachedImageTokens', isNumber],
  ['cacheWrittenHourTokens', isNumber],
  /** Web searches. */
  ['searches', isNumber],
  ['tier', isOneOf(serviceTiers)],
  ['tokensKnown', isOneOf(tokenSources)],
  ['bytesIn', isNumber],
  ['bytesOut', isNumber],
  /** Of audio or video. */
  ['mediaSeconds', isNumber],
  /** From the request's head to the end of its answer; kept to the microsecond, like the next. */
  ['durationMs', isNumber],
  /** From the request's head to the head of the upstream's answer, or to a session's first message; null without one. */
  ['firstByteMs', isNumberOrNull],
  /** Attempts after the first. */
  ['retries', isNumber],
  /** Images or videos; 1 for any other call, and 0 for a call not served. */
  ['units', isNumber],
  /** The charge of the key. */
  ['costNanoUsd', isNumber],
  /** The operator's cost; null if unknown. */
  ['paidNanoUsd', isNumberOrNull],
  // Newer than the rest: programs read a table by the places of its columns.
  /** Among the tokens as the other kinds are. */
  ['videoInputTokens', isNumber],
  /** Where the upstream served the call, in its own words; null if it did not say. */
  ['geo', isTextOrNull],
  /** Of the text that was spoken. */
  ['characters', isNumber],
] as const;

type Held<Fits> = Fits extends (value: unknown) => value is infer Value ? Value : never;

/** The record of an ended call. */
export type LedgerRecord = {
  readonly [Field in (typeof recordFields)[number] as Field[0]]: Held<Field[1]>;
};

/**
 * One line of JSON without its line end, for operators. The time is in ISO 8601.
 * @throws RangeError when the record's time is invalid
 */
export function writeRecord(record: LedgerRecord): string {
  return JSON.stringify({ ...record, at: new Date(record.at).toISOString() });
}

/** An object that may have the fields of a record, with unchecked values. */
export type LedgerRecordLike = { readonly [Name in keyof LedgerRecord]?: unknown };

/** Values of the fields that records of earlier versions lack. */
export const newerFields = { videoInputTokens: 0, geo: null, characters: 0 } as const;

/** Whether every field has a valid value. */
export function isLedgerRecord(value: LedgerRecordLike): value is LedgerRecord {
  return recordFields.every(([name, fits]) => fits(value[name]));
}

/** Whether a value is a time that `Date` can represent, in whole milliseconds since 1970. */
export function isTime(at: unknown): at is number {
  // The last is in the year 275760.
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
