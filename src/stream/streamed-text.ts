import { isObject, parseObject, textOrNull } from '../wire/json.js';
import { firstEventEnd, parseEvent } from '../wire/sse.js';
import { textWeight } from '../wire/text-weight.js';

/** Members that lead to the output of a model in an answer or event, in any of the text protocols. */
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
/** Members with text that a model has written. */
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
/** Members with a medium that a model has made: its bytes, or their location. */
const media: ReadonlySet<string> = new Set(['audio', 'image_url', 'inlineData', 'inline_data']);
/** Deeper than any protocol nests. */
const deepest = 12;

/** The output of a model in a whole answer or in one event. */
interface Written {
  /** Weight of its texts, by `textWeight`. */
  weight: number;
  /** Number of images and sounds. */
  media: number;
}

/** Measures the output of a model in a whole answer or in one event. */
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
    // An event that ends an item repeats the text of its deltas.
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string') {
        if (texts.has(name) && (depth > 0 || name === 'delta')) written.weight += textWeight(member);
      } else if (containers.has(name)) {
        addWritten(written, member, depth + 1);
      } else if (depth > 0 && isObject(member)) {
        if (media.has(name) && (typeof member.data === 'string' || typeof member.url === 'string'))
          written.media++;
        const text = objects.has(name) ? JSON.stringify(member) : '{}';
        // Empty if the arguments follow in pieces.
        if (text !== '{}') written.weight += textWeight(text);
      }
    }
  }
}

/** Bytes of a stream that count as text if its kept end contains no whole event with text. */
const longestUnread = 64 * 1024;

/**
 * Estimates how much text a stream contains, by `textWeight`, from the share of text in its last events. The framing around the
 * text is the same in all events, so earlier ones have the same share.
 * @param tail the last bytes of the stream
 * @param bytes length of the stream so far
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
    if (body !== null) weight += writtenIn(body).weight;
    // The end mark is no object. Comments have no data.
    if (data !== null) events++;
    read += next - start;
    start = next;
  }
  // The last events may have no text: the ends of many choices, or one that repeats the whole answer.
  const isBefore = weight === 0 && events > 0 && bytes > tail.length;
  if (read === 0 || isBefore) return Math.min(bytes, longestUnread);
  return Math.round((weight / read) * bytes);
}

/** Returns the weight of the text in a transcript. Its segments and words repeat the text. */
export function transcriptWeight(body: Buffer): number {
  const text = textOrNull(parseObject(body.toString('utf8'))?.text);
  return text === null ? body.length : textWeight(text);
}
