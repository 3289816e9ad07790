import { isObject, parseObject } from '../wire/json.js';
import { firstEventEnd, parseEvent } from '../wire/sse.js';
import { textWeight } from '../wire/text-weight.js';

/** Members on the way to what a model has made of an answer, or of an event, in any of the text protocols. */
const containers: ReadonlySet<string> = new Set([
  'candidates',
  'choices',
  'content',
  'content_block',
  'delta',
  'function',
  'functionCall',
  'function_call',
  'images',
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
/** Members that hold a medium which a model has made: its bytes, or where they are. */
const media: ReadonlySet<string> = new Set(['audio', 'image_url', 'inlineData', 'inline_data']);
/** Deeper than any protocol goes. */
const deepest = 12;

/** What of an answer, whole or one event of it, a model has made. */
interface Written {
  /** Of its texts, by `textWeight`. */
  weight: number;
  /** How many images and sounds there are. */
  media: number;
}

/** Counts what a model has made of an answer, whole or one event of it. */
export function writtenIn(answer: unknown): Readonly<Written> {
  const written: Written = { weight: 0, media: 0 };
  addWritten(written, answer, 0);
  return written;
}

function addWritten(written: Written, value: unknown, depth: number): void {
  if (depth > deepest) return;
  if (Array.isArray(value)) {
    for (const each of value) addWritten(written, each, depth + 1);
  } else if (isObject(value)) {
    if (value.type === 'image_generation_call' && typeof value.result === 'string') written.media++;
    // An event that is done with something repeats what its deltas have said.
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string') {
        if (texts.has(name) && (depth > 0 || name === 'delta')) written.weight += textWeight(member);
      } else if (containers.has(name)) {
        addWritten(written, member, depth + 1);
      } else if (depth > 0 && isObject(member)) {
        if (media.has(name) && (typeof member.data === 'string' || typeof member.url === 'string'))
          written.media++;
        const text = objects.has(name) ? JSON.stringify(member) : '{}';
        // Empty where the arguments follow in pieces.
        if (text !== '{}') written.weight += textWeight(text);
      }
    }
  }
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
      weight += writtenIn(body).weight;
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
