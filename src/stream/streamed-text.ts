import { isObject, parseObject } from '../wire/json.js';
import { firstEventEnd, parseEvent } from '../wire/sse.js';
import { textWeight } from '../wire/text-weight.js';

/** Members on the way to the text of an answer, or of an event, in any of the text protocols. */
const containers: ReadonlySet<string> = new Set([
  'candidates',
  'choices',
  'content',
  'content_block',
  'delta',
  'function',
  'functionCall',
  'function_call',
  'message',
  'output',
  'parts',
  'summary',
  'tool_calls',
]);
/** Members that hold text that a model has written. */
const texts: ReadonlySet<string> = new Set([
  'arguments',
  'content',
  'delta',
  'partial_json',
  'reasoning',
  'reasoning_content',
  'refusal',
  'text',
  'thinking',
]);
/** The arguments of a call as an object. */
const objects: ReadonlySet<string> = new Set(['args', 'input']);
/** Deeper than any protocol goes. */
const deepest = 12;

/** How much of an answer, whole or one event of it, a model has written, by `textWeight`. */
export function writtenWeight(answer: unknown): number {
  return weightIn(answer, 0);
}

function weightIn(value: unknown, depth: number): number {
  if (depth > deepest) return 0;
  let sum = 0;
  if (Array.isArray(value)) {
    for (const each of value) sum += weightIn(each, depth + 1);
  } else if (isObject(value)) {
    // An event that is done with something repeats what its deltas have said.
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string') {
        if (texts.has(name) && (depth > 0 || name === 'delta')) sum += textWeight(member);
      } else if (containers.has(name)) {
        sum += weightIn(member, depth + 1);
      } else if (depth > 0 && objects.has(name) && isObject(member)) {
        const text = JSON.stringify(member);
        // Empty where the arguments follow in pieces.
        if (text !== '{}') sum += textWeight(text);
      }
    }
  }
  return sum;
}

/** Members that hold a medium which a model has made: its bytes, or where they are. */
const mediaObjects: ReadonlySet<string> = new Set(['audio', 'image_url', 'inlineData', 'inline_data']);
/** Members on the way to them, beside those of texts. */
const mediaContainers: ReadonlySet<string> = new Set(['images']);

/** How many images and sounds a whole answer has, in any of the text protocols. */
export function writtenMedia(answer: unknown): number {
  return mediaIn(answer, 0);
}

function mediaIn(value: unknown, depth: number): number {
  if (depth > deepest) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const each of value) count += mediaIn(each, depth + 1);
  } else if (isObject(value)) {
    if (value.type === 'image_generation_call' && typeof value.result === 'string') count++;
    for (const [name, member] of Object.entries(value)) {
      if (depth > 0 && mediaObjects.has(name) && isObject(member)) {
        if (typeof member.data === 'string' || typeof member.url === 'string') count++;
      } else if (containers.has(name) || mediaContainers.has(name)) count += mediaIn(member, depth + 1);
    }
  }
  return count;
}

/** A stream whose text is in no whole event of what is kept of it counts as text up to this size. */
const longestUnread = 64 * 1024;

/**
 * How much of a stream a model has written, by `textWeight`, as the text in its last events tells: what comes with a text
 * is the same in all of them, so those before have had as much of it.
 * @param tail its last bytes
 * @param bytes of the whole stream so far
 */
export function streamedWeight(tail: Buffer, bytes: number): number {
  let read = 0;
  let weight = 0;
  let events = 0;
  let start = 0;
  if (bytes > tail.length) start = Math.max(0, firstEventEnd(tail, 0, tail.length));
  while (start < tail.length) {
    const next = firstEventEnd(tail, start, tail.length);
    if (next === -1) break;
    const { data } = parseEvent(tail.toString('utf8', start, next));
    const body = data === null ? null : parseObject(data);
    if (body !== null) {
      weight += writtenWeight(body);
      events++;
    }
    read += next - start;
    start = next;
  }
  // Events without text stand at the end: those of the ends of many choices, or one that repeats the whole answer.
  const isBefore = weight === 0 && events > 0 && bytes > tail.length;
  if (read === 0 || isBefore) return Math.min(bytes, longestUnread);
  return Math.round((weight / read) * bytes);
}
