import { type EventLog, emptyLog } from './event-log.js';
import type { AnswerTokens } from './text-answer.js';

/** What is known of a call that was sent: it fills as the answer comes. Times in milliseconds since it was sent. */
export interface CallRecord {
  readonly log: EventLog;
  /** Null before the answer's head; so are the headers empty. */
  status: number | null;
  headers: Readonly<Record<string, string>>;
  firstByteMs: number | null;
  /** The first piece of text, of thinking, or of a call of a tool. */
  firstTextMs: number | null;
  totalMs: number | null;
  tokens: AnswerTokens | null;
  /** Why the answer ended, in the protocol's word. */
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
 * Tokens of the output per second: over the time in which they came, where they streamed, else over all of it.
 * @returns null where it is not known
 */
export function tokensPerSecond({ tokens, firstTextMs, totalMs }: CallRecord): number | null {
  if (tokens === null || totalMs === null || tokens.output === 0) return null;
  const streamedMs = totalMs - (firstTextMs ?? 0);
  const ms = streamedMs > 0 ? streamedMs : totalMs;
  return ms > 0 ? (tokens.output * 1000) / ms : null;
}
