import type { Usage } from '../conversation/usage.js';

/** How calls end. */
export const outcomes = ['complete', 'incomplete', 'refused', 'client_gone', 'upstream_error'] as const;
export type Outcome = (typeof outcomes)[number];

/**
 * How the numbers of tokens are known: the upstream has reported them, they were counted from what was streamed until
 * the call broke off, they are the gateway's guess, or there are none.
 */
export const tokenSources = ['exact', 'partial', 'estimated', 'none'] as const;
export type TokenSource = (typeof tokenSources)[number];

/** The tokens of a call; what they include is said at `Usage`. */
export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWrittenTokens: number;
  readonly reasoningTokens: number;
}

/** A finished call, as the ledger keeps it. Sizes are in bytes. */
export interface UsageEntry extends TokenCounts {
  /** Unix milliseconds: when the call ended. */
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
  readonly outcome: Outcome;
  readonly tokensKnown: TokenSource;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Of audio or video. */
  readonly mediaSeconds: number;
  readonly durationMs: number;
  /** Until the first byte of the answer left; null when none did. */
  readonly firstByteMs: number | null;
  /** Attempts after the first one. */
  readonly retries: number;
  readonly costNanoUsd: number;
}

/** The tokens of an entry; none where nothing was reported. */
export function tokenCounts(usage: Usage | null): TokenCounts {
  return {
    inputTokens: usage?.input ?? 0,
    outputTokens: usage?.output ?? 0,
    cachedTokens: usage?.cached ?? 0,
    cacheWrittenTokens: usage?.cacheWritten ?? 0,
    reasoningTokens: usage?.reasoning ?? 0,
  };
}

/** What a field of an entry holds. */
type FieldKind = 'time' | 'text' | 'text or null' | 'texts' | 'number' | 'number or null' | Choice;
type Choice = readonly string[];

/** Every field of an entry, in the order of the columns. */
export const entryFields: readonly (readonly [name: keyof UsageEntry, kind: FieldKind])[] = [
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
  ['tokensKnown', tokenSources],
  ['bytesIn', 'number'],
  ['bytesOut', 'number'],
  ['mediaSeconds', 'number'],
  ['durationMs', 'number'],
  ['firstByteMs', 'number or null'],
  ['retries', 'number'],
  ['costNanoUsd', 'number'],
];

/**
 * One line of JSON without its end. The time is written in the form of ISO 8601.
 * @throws RangeError when the time of the entry is none
 */
export function writeEntry(entry: UsageEntry): string {
  // One for each call, on a worker's time: `JSON.stringify` takes three times as long.
  return (
    `{"at":"${isoTime(entry.at)}","requestId":${text(entry.requestId)},"keyId":${name(entry.keyId)},` +
    `"groups":[${entry.groups.map(name).join(',')}],"protocol":${name(entry.protocol)},` +
    `"model":${name(entry.model)},"target":${name(entry.target)},"status":${number(entry.status)},` +
    `"outcome":"${entry.outcome}","inputTokens":${number(entry.inputTokens)},` +
    `"outputTokens":${number(entry.outputTokens)},"cachedTokens":${number(entry.cachedTokens)},` +
    `"cacheWrittenTokens":${number(entry.cacheWrittenTokens)},` +
    `"reasoningTokens":${number(entry.reasoningTokens)},"tokensKnown":"${entry.tokensKnown}",` +
    `"bytesIn":${number(entry.bytesIn)},"bytesOut":${number(entry.bytesOut)},` +
    `"mediaSeconds":${number(entry.mediaSeconds)},"durationMs":${number(entry.durationMs)},` +
    `"firstByteMs":${number(entry.firstByteMs)},"retries":${number(entry.retries)},` +
    `"costNanoUsd":${number(entry.costNanoUsd)}}`
  );
}

/** Calls end in the same millisecond as the one before more often than not, where it counts. */
let lastTime = 0;
let lastIso = new Date(lastTime).toISOString();

function isoTime(at: number): string {
  if (at !== lastTime) {
    lastIso = new Date(at).toISOString();
    lastTime = at;
  }
  return lastIso;
}

/** What needs no escapes in a JSON string, as names and ids do not. */
const plain = /^[\w./: @+-]*$/;

function text(value: string | null): string {
  if (value === null) return 'null';
  return plain.test(value) ? `"${value}"` : JSON.stringify(value);
}

/** Names that calls have again and again, as JSON. */
const knownNames = new Map<string | null, string>();
const mostNames = 1000;

function name(value: string | null): string {
  const known = knownNames.get(value);
  if (known !== undefined) return known;
  if (knownNames.size >= mostNames) knownNames.clear();
  const quoted = text(value);
  knownNames.set(value, quoted);
  return quoted;
}

/** JSON has no word for what is no number. */
function number(value: number | null): string {
  return Number.isFinite(value) ? `${value}` : 'null';
}

/** Reads a line that `writeEntry` has made; null for any other text. Fields that are not known are left out. */
export function readEntry(line: string): UsageEntry | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof parsed !== 'object' || parsed === null) return null;
  const entry: Record<string, unknown> = {};
  for (const [name, kind] of entryFields) {
    const given: unknown = Reflect.get(parsed, name);
    const value = kind === 'time' && typeof given === 'string' ? Date.parse(given) : given;
    if (!fits(value, kind)) return null;
    entry[name] = value;
  }
  return entry as unknown as UsageEntry;
}

function fits(value: unknown, kind: FieldKind): boolean {
  switch (kind) {
    case 'time':
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
