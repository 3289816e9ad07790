import { type EventLog, emptyLog } from './event-log.js';
import type { AnswerTokens } from './text-answer.js';

/** The record of a call, filled while the answer arrives. Times are in milliseconds since it was sent. */
export interface CallRecord {
  readonly log: EventLog;
  /** Null before the answer's head arrives; the headers are empty until then. */
  status: number | null;
  headers: Readonly<Record<string, string>>;
  firstByteMs: number | null;
  /** Time of the first text, reasoning or tool call. */
  firstTextMs: number | null;
  totalMs: number | null;
  tokens: AnswerTokens | null;
  /** The protocol's finish reason. */
  finish: string | null;
}

export function emptyRecord(): CallRecord {
  return {
    log: emptyLog(),
    status: null,
    headers: {},
    firstByteMs: null,
    firstTextMs: null,
    totalMs: null,
    tokens: null,
    finish: null,
  };
}

/**
 * Output tokens per second: of a stream since its first text, else over the whole time.
 * @returns null if unknown
 */
export function tokensPerSecond({ tokens, firstTextMs, totalMs }: CallRecord): number | null {
  if (tokens === null || totalMs === null || tokens.output === 0) return null;
  const streamedMs = totalMs - (firstTextMs ?? 0);
  const ms = streamedMs > 0 ? streamedMs : totalMs;
  return ms > 0 ? (tokens.output * 1000) / ms : null;
}
