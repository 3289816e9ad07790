import { type ServiceTier, serviceTiers } from '../conversation/usage.js';
import { type CallOutcome, outcomes } from '../metrics/call-record.js';

/**
 * How the numbers of tokens are known: the upstream has reported them, they were counted from what was streamed until
 * the call broke off, they are the gateway's guess, or there are none.
 */
export const tokenSources = ['exact', 'partial', 'estimated', 'none'] as const;
export type TokenSource = (typeof tokenSources)[number];

/** The record of an ended call as the ledger keeps it. Sizes are in bytes. */
export interface LedgerRecord {
  /** Unix milliseconds, whole: when the call ended. */
  readonly at: number;
  readonly requestId: string;
  /** Null for a call without a valid key. */
  readonly keyId: string | null;
  /** Those of the key. */
  readonly groups: readonly string[];
  /** Null for a call that belongs to none. */
  readonly protocol: string | null;
  /** By its name in the config; null where the call named none of them, whatever it named. */
  readonly model: string | null;
  /** Upstream and model there; null when none was asked. */
  readonly target: string | null;
  /** HTTP status of the answer. */
  readonly status: number;
  readonly outcome: CallOutcome;
  /** What tokens include is said at `Usage`; none where nothing was reported. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWrittenTokens: number;
  readonly reasoningTokens: number;
  /** Which of these tokens are of a kind with a price of its own; see `TokenParts`. */
  readonly audioInputTokens: number;
  readonly audioOutputTokens: number;
  readonly imageInputTokens: number;
  readonly imageOutputTokens: number;
  readonly cachedAudioTokens: number;
  readonly cachedImageTokens: number;
  readonly cacheWrittenHourTokens: number;
  /** Of the web. */
  readonly searches: number;
  readonly tier: ServiceTier;
  readonly tokensKnown: TokenSource;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Of audio or video. */
  readonly mediaSeconds: number;
  /** From the request's head to the end of its answer; kept to the microsecond, as is the next. */
  readonly durationMs: number;
  /** From the request's head to that of its upstream's answer, of a session to its first message; null when none came. */
  readonly firstByteMs: number | null;
  /** Attempts after the first one. */
  readonly retries: number;
  /** Images or videos; 1 for any other call, and 0 where it was not served. */
  readonly units: number;
  /** What it was charged. */
  readonly costNanoUsd: number;
  /** What it has cost whoever runs the gateway; null where that is not known. */
  readonly paidNanoUsd: number | null;
}

/** What a field of a record holds. */
type FieldKind = 'time' | 'text' | 'text or null' | 'texts' | 'number' | 'number or null' | Choice;
type Choice = readonly string[];

/** Every field of a record, in the order of the columns. */
export const recordFields: readonly (readonly [name: keyof LedgerRecord, kind: FieldKind])[] = [
  ['at', 'time'],
  ['requestId', 'text'],
  ['keyId', 'text or null'],
  ['groups', 'texts'],
  ['protocol', 'text or null'],
  ['model', 'text or null'],
  ['target', 'text or null'],
  ['status', 'number'],
  ['outcome', outcomes],
  ['inputTokens', 'number'],
  ['outputTokens', 'number'],
  ['cachedTokens', 'number'],
  ['cacheWrittenTokens', 'number'],
  ['reasoningTokens', 'number'],
  ['audioInputTokens', 'number'],
  ['audioOutputTokens', 'number'],
  ['imageInputTokens', 'number'],
  ['imageOutputTokens', 'number'],
  ['cachedAudioTokens', 'number'],
  ['cachedImageTokens', 'number'],
  ['cacheWrittenHourTokens', 'number'],
  ['searches', 'number'],
  ['tier', serviceTiers],
  ['tokensKnown', tokenSources],
  ['bytesIn', 'number'],
  ['bytesOut', 'number'],
  ['mediaSeconds', 'number'],
  ['durationMs', 'number'],
  ['firstByteMs', 'number or null'],
  ['retries', 'number'],
  ['units', 'number'],
  ['costNanoUsd', 'number'],
  ['paidNanoUsd', 'number or null'],
];

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
  return recordFields.every(([name, kind]) => fits(value[name], kind));
}

/** Whether a calendar has the time, in whole milliseconds since 1970. */
export function isTime(at: unknown): at is number {
  return Number.isInteger(at) && (at as number) >= 0 && (at as number) <= lastTime;
}

/** In the year 275760. */
const lastTime = 8_640_000_000_000_000;

function fits(value: unknown, kind: FieldKind): boolean {
  switch (kind) {
    case 'time':
      return isTime(value);
    case 'number':
      return Number.isFinite(value);
    case 'number or null':
      return value === null || Number.isFinite(value);
    case 'text':
      return typeof value === 'string';
    case 'text or null':
      return value === null || typeof value === 'string';
    case 'texts':
      return Array.isArray(value) && value.every((each) => typeof each === 'string');
    default:
      return typeof value === 'string' && kind.includes(value);
  }
}
