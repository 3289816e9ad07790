import { isServersOwn } from '../../conversation/event-protocol.js';
import {
  judgingEvents,
  marksOf,
  type StreamEnding,
  type StreamRules,
} from '../../conversation/stream-rules.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, listOf, parseObject, textOrNull } from '../../wire/json.js';
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

/** How usage is read out of their bytes, and of what they decode to. */
export const { lastUsage, usageOf: decodeUsage } = createUsageReader();

/** With a choice in it: an event of an error may have an empty list. */
const choiceMarks = marksOf('"choices":[{', '"choices": [{');
/** Members of an event of usage. In none of them an error stands, where the list of choices is empty. */
const plainMembers = marksOf(
  ...['"id"', '"object"', '"created"', '"model"', '"choices"', '"usage"'],
  ...['"service_tier"', '"system_fingerprint"', '"provider"', '"obfuscation"'],
);
const choicesMember = plainMembers[4];
const dataField = Buffer.from('data:');
const usageKey = Buffer.from('"usage"');
const nullLength = 4;
/** So many members within others are looked at in what came at once: each may take going through all that follows it. */
const mostStrays = 16;
const lowerN = 0x6e;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
/** In the remains of an event that the tail cut into. A quoted key cannot occur inside a string. */
const finishedKey = '"finish_reason"';
const givenReason = /^\s*:\s*"[^"]/;

/** The part of a `StreamRules` that chat and completions have in common. */
interface ChoiceStream extends Pick<StreamRules, 'marks' | 'judgeStart' | 'hideUsage' | 'isHarmless'> {
  marksEnd(run: Buffer): boolean;
  /** Judges an ended stream by its last bytes alone. */
  judgeEnd(tail: Buffer): StreamEnding;
}

/** Makes what a protocol of such streams has to know of them. */
export function createChoiceStream(parts: ChoiceStreamParts): ChoiceStream {
  const judgeStart = judgingEvents((event, data) => {
    const read = readChoiceEvent(parts, event, data);
    if (read === 'end') return emptyStream();
    if (read === null) return 'silence';
    return read instanceof GatewayError ? read : 'meaningful';
  });

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
    }
    return { state: isComplete ? 'complete' : 'incomplete', usage, error: null };
  }

  return { marks: choiceMarks, isHarmless, judgeStart, marksEnd, judgeEnd, hideUsage };
}

/** Whether an event plainly is that of the usage; see `StreamRules.isHarmless`. */
function isHarmless(run: Buffer, start: number, end: number): boolean {
  if (!standsAt(run, start, dataField)) return false;
  let at = skipSpace(run, start + dataField.length);
  if (run[at] !== openBrace) return false;
  do {
    const key = skipSpace(run, at + 1);
    const member = memberAt(run, key);
    const value = member === null ? -1 : afterColon(run, key + member.length - 1);
    if (value === -1 || (member === choicesMember && !isEmptyList(run, value))) return false;
    const valueEnd = endOfValue(run, value, mostDepth);
    if (valueEnd === -1) return false;
    at = skipSpace(run, valueEnd);
  } while (run[at] === comma);
  return run[at] === closeBrace && at < end && skipSpace(run, at + 1) >= end;
}

function memberAt(run: Buffer, key: number): Buffer | null {
  for (const member of plainMembers) if (standsAt(run, key, member)) return member;
  return null;
}

function isEmptyList(run: Buffer, at: number): boolean {
  return run[at] === openBracket && run[at + 1] === closeBracket;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Takes out of whole events what stands in them because usage was asked for: the event of it, and the `null` that OpenAI
 * writes in its place in each event before (https://platform.openai.com/docs/api-reference/chat/create, `stream_options`),
 * which the clients of other vendors do not know.
 */
function hideUsage(run: Buffer): Buffer {
  let kept: Buffer | null = null;
  let length = 0;
  let from = 0;
  let strays = 0;
  /** Up to there nothing more is to be hidden; and the end of the last event that was parsed. */
  let done = 0;
  let parsed = 0;
  for (let at = run.indexOf(usageKey); at !== -1; at = run.indexOf(usageKey, done)) {
    done = at + usageKey.length;
    const value = afterColon(run, done - 1);
    let hidden: Span | null = null;
    if (value !== -1 && run[value] === lowerN) {
      hidden = nullUsage(run, at, value + nullLength);
      if (hidden === null && ++strays === mostStrays) break;
    } else if (at >= parsed && value !== -1 && run[value] === openBrace) {
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
 * A member of a chunk itself, with the comma before or behind it.
 * @param at where its key begins
 * @param end where its value does
 * @returns null for a member of another object
 */
function nullUsage(run: Buffer, at: number, end: number): Span | null {
  if (!isOutermost(run, end)) return null;
  let before = at - 1;
  while (isSpace(run[before] as number)) before--;
  if (run[before] === comma) return { start: before, end };
  const behind = skipSpace(run, end);
  return run[behind] === comma ? { start: at, end: skipSpace(run, behind + 1) } : null;
}

/** Whether the object whose members go on at an offset ends with its line: one within another does not. */
function isOutermost(run: Buffer, from: number): boolean {
  let at = skipSpace(run, from);
  while (run[at] === comma) {
    const key = endOfString(run, skipSpace(run, at + 1) + 1);
    const value = key === -1 ? -1 : afterColon(run, key);
    const end = value === -1 ? -1 : endOfValue(run, value, mostDepth);
    if (end === -1) return false;
    at = skipSpace(run, end);
  }
  const next = run[at + 1];
  return run[at] === closeBrace && (next === undefined || next === lineFeed || next === carriageReturn);
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
  if (chunk === null) return brokenEvent(protocol);
  const error = upstreamError(chunk.error);
  if (error !== null) return error;
  if ('choices' in chunk || isObject(chunk.usage) || chunk.object === chunkObject) return chunk;
  if (event === 'error' || chunk.type === 'error') return upstreamError(chunk);
  const type = textOrNull(chunk.type) ?? event;
  if (isServersOwn(type, chunk)) return null;
  return foreignEvent(protocol, type, 'an event without choices');
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
  for (const { start, end } of lastEvents(tail, Number.POSITIVE_INFINITY)) {
    const chunk = eventObject(tail, start, end);
    for (const choice of listOf(chunk?.choices)) {
      const index = isObject(choice) ? (choice.index ?? 0) : 0;
      if (!finished.has(index)) finished.set(index, hasFinished(choice));
    }
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
function marksEnd(run: Buffer): boolean {
  let end = run.length;
  while (end > 0 && (run[end - 1] === 10 || run[end - 1] === 13)) end--;
  // Most events end as JSON objects do.
  if (run[end - 1] !== closeBracket) return false;
  const last = run.toString('latin1', Math.max(0, end - endMark.length - 1), end);
  // The space behind the colon may be left out.
  return last.replace(' ', '').endsWith(endMark);
}
