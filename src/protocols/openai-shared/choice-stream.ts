import { isServersOwn, isSignOfLife } from '../../conversation/event-protocol.js';
import {
  judgingContent,
  judgingEvents,
  marksOf,
  type StreamEnding,
  type StreamRules,
  type StreamStart,
} from '../../conversation/stream-rules.js';
import { GatewayError } from '../../errors.js';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  CR,
  LF,
  LOWER_N,
  OPEN_BRACE,
  OPEN_BRACKET,
} from '../../wire/bytes.js';
import { isObject, type JsonObject, listOf, objectOf, parseObject, textOrNull } from '../../wire/json.js';
import type { Span } from '../../wire/json-scan.js';
import {
  afterColon,
  endOfString,
  endOfValue,
  isSpace,
  mostDepth,
  skipSpace,
  standsAt,
} from '../../wire/json-skip.js';
import { eventEnd, eventObject, lastEventEnd, lastEvents, parseEvent } from '../../wire/sse.js';
import { brokenEvent, foreignEvent, upstreamError } from '../error-formats/upstream-error.js';
import { createUsageReader } from './usage.js';

/*
 * Streams of chat and of the older completions: unnamed events that are objects with `choices`. One without any choice
 * may follow, with the usage. `[DONE]` is last.
 */

/** What distinguishes one protocol with such streams from another. */
export interface ChoiceStreamParts {
  /** Name of the protocol, for error messages. */
  readonly protocol: string;
  /** Value of `object` in its chunks. */
  readonly chunkObject: string;
}

/** Read the usage from the bytes of such a protocol, and from a parsed answer. */
export const { lastUsage, usageOf: decodeUsage } = createUsageReader();

/** With the beginning of a choice: an event of an error may have an empty list. */
const choiceMarks = marksOf('"choices":[{', '"choices": [{');
/** Members of an event with usage. If its list of choices is empty, none of them can contain an error. */
const plainMembers = marksOf(
  ...['"id"', '"object"', '"created"', '"model"', '"choices"', '"usage"'],
  ...['"service_tier"', '"system_fingerprint"', '"provider"', '"obfuscation"'],
);
const choicesMember = plainMembers[4];
const dataField = Buffer.from('data:');
const usageKey = Buffer.from('"usage"');
const nullLength = 4;
/**
 * Most nested members of that name that are examined in bytes that arrive together: each may take a walk through
 * everything after it.
 */
const mostStrays = 16;
/** Found in the rest of an event that the kept end of a stream cut. A quoted key cannot occur inside a string. */
const finishedKey = '"finish_reason"';
const givenReason = /^\s*:\s*"[^"]/;

/** The part of a `StreamRules` that chat and completions share. */
interface ChoiceStream
  extends Pick<StreamRules, 'marks' | 'judgeStart' | 'judgeContent' | 'hideUsage' | 'isHarmless'> {
  marksEnd(run: Buffer): boolean;
  /** Judges an ended stream by its last bytes alone. */
  judgeEnd(tail: Buffer): StreamEnding;
}

/** Makes the stream rules of a protocol with such streams. */
export function createChoiceStream(parts: ChoiceStreamParts): ChoiceStream {
  function judgeEvent(event: string | null, data: string): StreamStart {
    const read = readChoiceEvent(parts, event, data);
    if (read === 'end') return emptyStream();
    if (read === null) return 'silence';
    return read instanceof GatewayError ? read : 'meaningful';
  }

  function judgeEnd(tail: Buffer): StreamEnding {
    const usage = lastUsage(tail);
    let isComplete = false;
    for (const { start, end } of lastEvents(tail)) {
      const { data } = parseEvent(tail.toString('utf8', start, end));
      const chunk = data === null || data === '[DONE]' ? null : parseObject(data);
      const error = chunk === null ? null : upstreamError(chunk.error);
      if (data === '[DONE]') {
        isComplete = true;
      } else if (chunk === null) {
        // The kept end begins inside the event, or the stream broke off in it. Otherwise, it is not a chunk.
        if (start === 0) isComplete ||= remainsFinished(tail.toString('utf8', 0, end));
        else if (end === tail.length && data !== null && data !== '')
          return { state: 'incomplete', usage, error: null };
      } else if (error !== null) {
        return { state: 'failed', usage, error };
      } else if (Array.isArray(chunk.choices) && chunk.choices.length > 0) {
        isComplete ||= haveFinished(tail.subarray(0, end));
        break;
      }
    }
    return { state: isComplete ? 'complete' : 'incomplete', usage, error: null };
  }

  return {
    marks: choiceMarks,
    isHarmless,
    judgeStart: judgingEvents(judgeEvent),
    judgeContent: judgingContent(judgeEvent, ({ choices }) => !listOf(choices).some(hasContent)),
    marksEnd,
    judgeEnd,
    hideUsage,
  };
}

/** Tells whether a choice has more than the role with which a stream opens. */
function hasContent(choice: unknown): boolean {
  if (!isObject(choice)) return false;
  if (hasFinished(choice) || (typeof choice.text === 'string' && choice.text !== '')) return true;
  const { role: _, ...delta } = objectOf(choice.delta);
  return Object.values(delta).some((value) => value !== null && value !== '' && !isEmptyArray(value));
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Tells whether an event is clearly that of the usage; see `StreamRules.isHarmless`. */
function isHarmless(run: Buffer, start: number, end: number): boolean {
  if (!standsAt(run, start, dataField)) return false;
  let at = skipSpace(run, start + dataField.length);
  if (run[at] !== OPEN_BRACE) return false;
  do {
    const key = skipSpace(run, at + 1);
    const member = memberAt(run, key);
    const value = member === null ? -1 : afterColon(run, key + member.length - 1);
    if (value === -1 || (member === choicesMember && !isEmptyList(run, value))) return false;
    const valueEnd = endOfValue(run, value, mostDepth);
    if (valueEnd === -1) return false;
    at = skipSpace(run, valueEnd);
  } while (run[at] === COMMA);
  return run[at] === CLOSE_BRACE && at < end && skipSpace(run, at + 1) >= end;
}

function memberAt(run: Buffer, key: number): Buffer | null {
  for (const member of plainMembers) if (standsAt(run, key, member)) return member;
  return null;
}

function isEmptyList(run: Buffer, at: number): boolean {
  return run[at] === OPEN_BRACKET && run[at + 1] === CLOSE_BRACKET;
}

/**
 * Removes from whole events what is there only because the usage was requested: the event with the usage, and the
 * `null` that OpenAI writes in its place in each earlier event
 * (https://platform.openai.com/docs/api-reference/chat/create, `stream_options`). Clients of other vendors do not know
 * these.
 */
function hideUsage(run: Buffer): Buffer {
  let kept: Buffer | null = null;
  let length = 0;
  let from = 0;
  let strays = 0;
  /** Nothing before `done` has to be hidden any more. `parsed` is the end of the last event that was parsed. */
  let done = 0;
  let parsed = 0;
  for (let at = run.indexOf(usageKey); at !== -1; at = run.indexOf(usageKey, done)) {
    done = at + usageKey.length;
    const value = afterColon(run, done - 1);
    let hidden: Span | null = null;
    if (value !== -1 && run[value] === LOWER_N) {
      hidden = nullUsage(run, at, value + nullLength);
      if (hidden === null && ++strays === mostStrays) break;
    } else if (at >= parsed && value !== -1 && run[value] === OPEN_BRACE) {
      const event = { start: lastEventEnd(run, 0, at), end: eventEnd(run, at) };
      parsed = event.end;
      if (hasNoChoice(eventObject(run, event.start, event.end))) hidden = event;
    }
    if (hidden === null) continue;
    kept ??= Buffer.allocUnsafe(run.length);
    length += run.copy(kept, length, from, hidden.start);
    from = hidden.end;
    done = eventEnd(run, at);
  }
  if (kept === null) return run;
  length += run.copy(kept, length, from);
  return kept.subarray(0, length);
}

function hasNoChoice(chunk: JsonObject | null): boolean {
  return chunk !== null && Array.isArray(chunk.choices) && chunk.choices.length === 0;
}

/**
 * Finds the extent of a member of the chunk itself, with the comma before or after it.
 * @param at offset of its key
 * @param end offset after its value
 * @returns null for a member of another object
 */
function nullUsage(run: Buffer, at: number, end: number): Span | null {
  if (!isOutermost(run, end)) return null;
  let before = at - 1;
  while (isSpace(run[before] as number)) before--;
  if (run[before] === COMMA) return { start: before, end };
  const behind = skipSpace(run, end);
  return run[behind] === COMMA ? { start: at, end: skipSpace(run, behind + 1) } : null;
}

/** Tells whether the object whose members continue at an offset ends with its line. A nested object does not. */
function isOutermost(run: Buffer, from: number): boolean {
  let at = skipSpace(run, from);
  while (run[at] === COMMA) {
    const key = endOfString(run, skipSpace(run, at + 1) + 1);
    const value = key === -1 ? -1 : afterColon(run, key);
    const end = value === -1 ? -1 : endOfValue(run, value, mostDepth);
    if (end === -1) return false;
    at = skipSpace(run, end);
  }
  const next = run[at + 1];
  return run[at] === CLOSE_BRACE && (next === undefined || next === LF || next === CR);
}

/**
 * Reads an event of such a stream, for untouched and translated answers.
 * @param event its `event` field, or null
 * @param data its `data` field
 * @returns a chunk; `end` for the end mark, which nothing follows; null for an event without information; or the error
 * that the event is or means
 */
export function readChoiceEvent(
  { protocol, chunkObject }: ChoiceStreamParts,
  event: string | null,
  data: string,
): JsonObject | 'end' | GatewayError | null {
  const text = data.trim();
  if (text === '[DONE]') return 'end';
  const chunk = parseObject(text);
  if (chunk === null) return isSignOfLife(event, text) ? null : brokenEvent(protocol);
  const error = upstreamError(chunk.error);
  if (error !== null) return error;
  if ('choices' in chunk || isObject(chunk.usage) || chunk.object === chunkObject) return chunk;
  if (event === 'error' || chunk.type === 'error') return upstreamError(chunk);
  const type = textOrNull(chunk.type) ?? event;
  if (isServersOwn(type, chunk)) return null;
  return foreignEvent(protocol, type, 'an event without choices');
}

/** Returns the failure of a stream that reaches its end mark without any choice. */
export function emptyStream(): GatewayError {
  return new GatewayError('upstream_error', "The upstream's stream has no answer in it.", {
    unbegun: true,
    cause: 'ended without an answer in it',
  });
}

/**
 * Tells whether the choices in the last bytes of a stream have finished. Without the end mark, the stream has ended
 * only if all of them have: choices may finish one by one.
 */
function haveFinished(tail: Buffer): boolean {
  const finished = new Set<unknown>();
  for (const { start, end } of lastEvents(tail, Number.POSITIVE_INFINITY)) {
    const chunk = eventObject(tail, start, end);
    for (const choice of listOf(chunk?.choices)) {
      const index = isObject(choice) ? (choice.index ?? 0) : 0;
      if (finished.has(index)) continue;
      if (!hasFinished(choice)) return false;
      finished.add(index);
    }
  }
  return true;
}

/** Tells whether a choice has finished. Some upstreams send an empty reason in every chunk. */
function hasFinished(choice: unknown): boolean {
  return isObject(choice) && typeof choice.finish_reason === 'string' && choice.finish_reason !== '';
}

/** Tells whether the last finish reason in the rest of an event is not empty. */
function remainsFinished(remains: string): boolean {
  const at = remains.lastIndexOf(finishedKey);
  return at !== -1 && givenReason.test(remains.slice(at + finishedKey.length));
}

const endMark = 'data:[DONE]';

/** Tells whether whole events end with the end mark, which nothing follows; see `StreamRules.marksEnd`. */
function marksEnd(run: Buffer): boolean {
  let end = run.length;
  while (end > 0 && (run[end - 1] === 10 || run[end - 1] === 13)) end--;
  // Most events end as JSON objects do.
  if (run[end - 1] !== CLOSE_BRACKET) return false;
  const last = run.toString('latin1', Math.max(0, end - endMark.length - 1), end);
  // The space after the colon is optional.
  return last.replace(' ', '').endsWith(endMark);
}
