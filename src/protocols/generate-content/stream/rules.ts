import { isServersOwn, isSignOfLife } from '../../../conversation/event-protocol.js';
import {
  judgingContent,
  judgingEvents,
  marksOf,
  type StreamEnding,
  type StreamFacts,
  type StreamStart,
} from '../../../conversation/stream-rules.js';
import { GatewayError } from '../../../errors.js';
import { CLOSE_BRACE, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../../wire/bytes.js';
import { isObject, type JsonObject, listOf, objectOf, parseObject, textOrNull } from '../../../wire/json.js';
import { afterColon, endOfString, skipSpace } from '../../../wire/json-skip.js';
import { eventObject, firstEventEnd, lastEvents } from '../../../wire/sse.js';
import { isReason } from '../answer/finish.js';
import { lastUsage } from '../answer/usage.js';
import { foreignBlock, upstreamError } from '../upstream-error.js';

/**
 * Quoted keys of finish reasons, which cannot occur inside a string, since its quotes would be escaped. `levels` is how
 * many levels close from the key's object to the end of the response: of `candidates[]` and of `promptFeedback`. The
 * arguments of a call, which may have any keys, lie deeper.
 */
const reasons = [
  { key: Buffer.from('"finishReason"'), levels: 3 },
  { key: Buffer.from('"blockReason"'), levels: 2 },
] as const;
/**
 * How many of each key are examined, from the last one. The reason stands after the content, where a client may make a
 * model call a function with any number of such arguments.
 */
const mostLooked = 8;
const responseMembers = ['candidates', 'promptFeedback', 'usageMetadata', 'responseId', 'modelVersion'];
const unspecified = Buffer.from('_UNSPECIFIED"');

/** See `StreamRules.marks`. */
export const marks = marksOf('"candidates"');

/** Judges the first blocks of a stream; see `StreamRules.judgeStart`. */
export const judgeStart = judgingEvents(judgeBlock);

/** Judges them likewise, but waits for content; see `StreamRules.judgeContent`. */
export const judgeContent = judgingContent(judgeBlock, ({ candidates, promptFeedback }) => {
  const hasContent = (candidate: unknown): boolean =>
    isObject(candidate) &&
    (isReason(candidate.finishReason) || listOf(objectOf(candidate.content).parts).length > 0);
  return !isObject(promptFeedback) && !listOf(candidates).some(hasContent);
});

function judgeBlock(event: string | null, data: string): StreamStart {
  const read = readBlock(event, data);
  if (read === null) return 'silence';
  return read instanceof GatewayError ? read : 'meaningful';
}

/**
 * Tells whether whole blocks contain the reason why the answer ended; see `StreamRules.marksEnd`. The sources and the
 * signature of an answer stand beside the reason, and may be longer than the part of a stream's end that is kept.
 */
export function marksEnd(run: Buffer): boolean {
  return namesReason(run);
}

/** Judges the end of a stream; see `StreamRules.judgeEnd`. */
export function judgeEnd(tail: Buffer, { ended }: StreamFacts): StreamEnding {
  const usage = lastUsage(tail);
  let complete = ended;
  for (const { start, end } of lastEvents(tail)) {
    const block = eventObject(tail, start, end);
    if (block === null) {
      // The kept end of the stream may begin inside the event.
      if (start === 0 && namesReason(tail.subarray(0, end))) complete = true;
    } else if (isObject(block.error)) {
      return { state: 'failed', usage, error: upstreamError(block.error) };
    } else if (hasReason(block)) {
      complete = true;
    }
  }
  return { state: complete ? 'complete' : 'incomplete', usage, error: null };
}

/**
 * @returns a response of this protocol, or part of one; the error that the event is or means; or null for a server's own
 * event
 */
export function readBlock(event: string | null, data: string): JsonObject | GatewayError | null {
  const block = parseObject(data);
  if (block === null) return isSignOfLife(event, data) ? null : foreignBlock(null);
  if (isObject(block.error)) return upstreamError(block.error);
  for (const name of responseMembers) if (name in block) return block;
  return isServersOwn(textOrNull(block.type) ?? event, block) ? null : foreignBlock(block);
}

function hasReason({ candidates, promptFeedback }: JsonObject): boolean {
  if (isObject(promptFeedback) && isReason(promptFeedback.blockReason)) return true;
  return (
    Array.isArray(candidates) && candidates.some((each) => isObject(each) && isReason(each.finishReason))
  );
}

function namesReason(bytes: Buffer): boolean {
  for (const { key, levels } of reasons) {
    let left = mostLooked;
    for (let at = bytes.lastIndexOf(key); at !== -1 && left > 0; at = keyBefore(bytes, key, at)) {
      const value = afterColon(bytes, at + key.length - 1);
      if (value === -1 || bytes[value] !== QUOTE) continue;
      const close = bytes.indexOf(QUOTE, value + 1);
      if (close <= value + 1 || endsWith(bytes, close + 1, unspecified)) continue;
      left--;
      const end = endOfLevels(bytes, close + 1, levels);
      if (end !== -1 && endsEvent(bytes, end)) return true;
    }
  }
  return false;
}

function keyBefore(bytes: Buffer, key: Buffer, at: number): number {
  return at === 0 ? -1 : bytes.lastIndexOf(key, at - 1);
}

/**
 * Returns the offset after the bracket that closes this many levels around `from`, which is outside of strings, or -1.
 */
function endOfLevels(bytes: Buffer, from: number, levels: number): number {
  let left = levels;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1);
      if (at === -1) return -1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      left++;
    } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --left === 0) {
      return at + 1;
    }
  }
  return -1;
}

/** Tells whether only white space stands between `at` and the end of the event or of the bytes. */
function endsEvent(bytes: Buffer, at: number): boolean {
  const next = skipSpace(bytes, at);
  return next === bytes.length || firstEventEnd(bytes, at, next) !== -1;
}

function endsWith(bytes: Buffer, end: number, suffix: Buffer): boolean {
  const start = end - suffix.length;
  return start >= 0 && bytes.compare(suffix, 0, suffix.length, start, end) === 0;
}
