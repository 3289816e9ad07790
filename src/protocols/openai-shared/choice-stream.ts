import { isServersOwn } from '../../conversation/event-protocol.js';
import { marksOf, type StreamEnding, type StreamRules } from '../../conversation/stream-rules.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, parseObject, textOrNull } from '../../wire/json.js';
import { objectAfterKey } from '../../wire/json-skip.js';
import { eventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { foreignStream, upstreamError } from '../error-formats/upstream-error.js';
import { createUsageReader } from './usage.js';

/*
 * The streams of chat and of the older completions: unnamed events that are objects with `choices`, then perhaps one
 * with no choice in it and the usage, then `[DONE]`.
 */

/** What tells one protocol of such streams from another. */
export interface ChoiceStreamParts {
  /** Name of the protocol, for messages. */
  readonly protocol: string;
  /** Value of `object` in its chunks. */
  readonly chunkObject: string;
}

/** How usage is read out of their bytes. */
export const { lastUsage, usageAt } = createUsageReader();

/** With a choice in it: an event of an error may have an empty list. */
const choiceMarks = marksOf('"choices":[{', '"choices": [{');
const usageKey = Buffer.from('"usage"');
/** How many of a stream's last events tell how it ended: the last choice, its usage, and `[DONE]`, with some room. */
const finalEvents = 4;
/** In the remains of an event that the tail cut into. A quoted key cannot occur inside a string. */
const finishedKey = '"finish_reason"';
const givenReason = /^\s*:\s*"[^"]/;

/** The part of a `StreamRules` that chat and completions have in common. */
interface ChoiceStream extends Pick<StreamRules, 'marks' | 'judgeStart' | 'findUsageEvent'> {
  /** Judges an ended stream by its last bytes alone. */
  judgeEnd(tail: Buffer): StreamEnding;
}

/** Makes what a protocol of such streams has to know of them. */
export function createChoiceStream(parts: ChoiceStreamParts): ChoiceStream {
  function judgeStart(run: Buffer): 'silence' | 'meaningful' | GatewayError {
    for (let start = 0; start < run.length; ) {
      const end = eventEnd(run, start);
      const { event, data } = parseEvent(run.toString('utf8', start, end));
      const read = data === null ? null : readChoiceEvent(parts, event, data);
      if (read === 'end') return emptyStream();
      if (read !== null) return read instanceof GatewayError ? read : 'meaningful';
      start = end;
    }
    return 'silence';
  }

  function judgeEnd(tail: Buffer): StreamEnding {
    const usage = lastUsage(tail);
    let isComplete = false;
    for (let end = tail.length, looked = 0; end > 0 && looked < finalEvents; looked++) {
      const start = lastEventEnd(tail, 0, Math.max(0, end - 2));
      const { data } = parseEvent(tail.toString('utf8', start, end));
      const chunk = data === null || data === '[DONE]' ? null : parseObject(data);
      const error = chunk === null ? null : upstreamError(chunk.error);
      if (data === '[DONE]') {
        isComplete = true;
      } else if (chunk === null) {
        // The tail cut into its beginning, or the stream broke off in it; else it is no chunk at all.
        if (start === 0) isComplete ||= remainsFinished(tail.toString('utf8', 0, end));
        else if (end === tail.length && data !== null && data !== '')
          return { state: 'incomplete', usage, error: null };
      } else if (error !== null) {
        return { state: 'failed', usage, error };
      } else if (Array.isArray(chunk.choices) && chunk.choices.length > 0) {
        isComplete ||= haveFinished(tail.subarray(0, end));
        break;
      }
      end = start;
    }
    return { state: isComplete ? 'complete' : 'incomplete', usage, error: null };
  }

  function findUsageEvent(run: Buffer): { start: number; end: number } | null {
    for (let at = run.indexOf(usageKey); at !== -1; at = run.indexOf(usageKey, at + usageKey.length)) {
      const value = objectAfterKey(run, at, usageKey.length);
      if (value === -1 || usageAt(run, value) === null) continue;
      const start = lastEventEnd(run, 0, at);
      const end = eventEnd(run, at);
      const chunk = parseObject(parseEvent(run.toString('utf8', start, end)).data ?? '');
      if (chunk !== null && Array.isArray(chunk.choices) && chunk.choices.length === 0) return { start, end };
    }
    return null;
  }

  return { marks: choiceMarks, judgeStart, judgeEnd, findUsageEvent };
}

/**
 * Reads an event of such a stream, wherever it passes or is translated.
 * @param event its `event` field, or null
 * @param data its `data` field
 * @returns a chunk; `end` for the mark behind which nothing comes, null for what says nothing, or the error that the
 * event is or means
 */
export function readChoiceEvent(
  { protocol, chunkObject }: ChoiceStreamParts,
  event: string | null,
  data: string,
): JsonObject | 'end' | GatewayError | null {
  const text = data.trim();
  if (text === '') return null;
  if (text === '[DONE]') return 'end';
  const chunk = parseObject(text);
  if (chunk === null) return foreignStream(protocol, 'an event that is not a JSON object');
  const error = upstreamError(chunk.error);
  if (error !== null) return error;
  if ('choices' in chunk || isObject(chunk.usage) || chunk.object === chunkObject) return chunk;
  if (event === 'error' || chunk.type === 'error') return upstreamError(chunk);
  const type = textOrNull(chunk.type) ?? event;
  if (isServersOwn(type, chunk)) return null;
  return foreignStream(protocol, type === null ? 'an event without choices' : `an event of type ${type}`);
}

/** The failure of a stream that comes to its end mark with no choice in it. */
export function emptyStream(): GatewayError {
  return new GatewayError('upstream_error', "The upstream's stream has no answer in it.", {
    unbegun: true,
    cause: 'ended without an answer in it',
  });
}

/**
 * Whether the choices have ended of which the last bytes of a stream tell. Without the mark, the end of them all is that
 * of the stream: several may end one by one, while others go on.
 */
function haveFinished(tail: Buffer): boolean {
  const finished = new Map<unknown, boolean>();
  for (let end = tail.length; end > 0; ) {
    const start = lastEventEnd(tail, 0, Math.max(0, end - 2));
    const chunk = parseObject(parseEvent(tail.toString('utf8', start, end)).data ?? '');
    for (const choice of Array.isArray(chunk?.choices) ? chunk.choices : []) {
      const index = isObject(choice) ? (choice.index ?? 0) : 0;
      if (!finished.has(index)) finished.set(index, hasFinished(choice));
    }
    end = start;
  }
  return [...finished.values()].every(Boolean);
}

/** Some upstreams have an empty reason in every chunk. */
function hasFinished(choice: unknown): boolean {
  return isObject(choice) && typeof choice.finish_reason === 'string' && choice.finish_reason !== '';
}

/** Whether the last reason to finish in the remains of an event is one. */
function remainsFinished(remains: string): boolean {
  const at = remains.lastIndexOf(finishedKey);
  return at !== -1 && givenReason.test(remains.slice(at + finishedKey.length));
}

const endMark = 'data:[DONE]';

/** Whether whole events end with the mark behind which nothing comes; see `StreamRules.marksEnd`. */
export function endsWithMark(run: Buffer): boolean {
  let end = run.length;
  while (end > 0 && (run[end - 1] === 10 || run[end - 1] === 13)) end--;
  const last = run.toString('latin1', Math.max(0, end - endMark.length - 1), end);
  // The space behind the colon may be left out.
  return last.replace(' ', '').endsWith(endMark);
}
