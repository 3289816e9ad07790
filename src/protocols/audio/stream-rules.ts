import { marksOf, type StreamEnding, type StreamFacts } from '../../conversation/stream-rules.js';
import { GatewayError } from '../../errors.js';
import { parseObject, textOrNull } from '../../wire/json.js';
import { firstEventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { upstreamError } from '../error-formats/upstream-error.js';
import { audioUsage } from './usage.js';

/*
 * The streams of transcriptions and of speech: events of a `type` in their data, and in their name from some upstreams.
 */

/** The last event of a stream, by its type. */
const doneTypes: readonly string[] = ['transcript.text.done', 'speech.audio.done'];
/** One of these is in an event that may be the last: a text in quotes cannot stand inside another one. */
const lastTypes = [...doneTypes, 'error'];
const lastWords = lastTypes.map((type) => Buffer.from(`"${type}"`));
/** How many of the last events are looked at: `[DONE]` and comments may follow the one that ends the stream. */
const finalEvents = 4;
/** An event's name, and the whole of a comment or of `[DONE]`, are within so many bytes. */
const headBytes = 128;
/** How a line of an event, or a comment, begins. */
const lineStart = /^\ufeff?(data|event|id|retry)?:/;

/** See `StreamRules.marks`; with that of a whole transcript. */
export const marks = marksOf('"transcript.', '"speech.', '"text"');

/** Judges the first events of a stream; see `StreamRules.judgeStart`. */
export function judgeStart(run: Buffer): 'silence' | 'meaningful' | GatewayError {
  for (let start = 0; start < run.length; ) {
    const next = firstEventEnd(run, start, run.length);
    const end = next === -1 ? run.length : next;
    const { event, data } = parseEvent(run.toString('utf8', start, end));
    if (data !== null) return errorOf(event, data) ?? 'meaningful';
    start = end;
  }
  return 'silence';
}

/** Whether a run of events ends with the stream's last one; see `StreamRules.marksEnd`. */
export function marksEnd(run: Buffer): boolean {
  return lastWord(run) === 'done';
}

/** Judges the end of a stream; see `StreamRules.judgeEnd`. */
export function judgeEnd(tail: Buffer, facts: StreamFacts): StreamEnding {
  const usage = audioUsage(tail);
  const word = lastWord(tail);
  if (word === 'failed') return { state: 'failed', usage };
  // Only the last event has usage, and where it is large the tail has no more of it than its end.
  const isComplete = word === 'done' || facts.ended || (word === 'unknown' && usage !== null);
  return { state: isComplete ? 'complete' : 'incomplete', usage };
}

/** What the last event with data says; `unknown` where its begin is not there. */
type LastWord = 'done' | 'failed' | 'unknown' | 'other';

function lastWord(bytes: Buffer): LastWord {
  for (let end = bytes.length, looked = 0; end > 0 && looked < finalEvents; looked++) {
    const start = lastEventEnd(bytes, 0, Math.max(0, end - 2));
    const head = bytes.toString('utf8', start, Math.min(end, start + headBytes));
    if (start === 0 && !lineStart.test(head)) return 'unknown';
    if (end - start > headBytes || !isEmpty(head)) return wordOf(bytes.subarray(start, end), head);
    end = start;
  }
  return 'other';
}

/** The bytes of a sound are not parsed for it. */
function wordOf(found: Buffer, head: string): LastWord {
  const isNamed = head.startsWith('event:') && lastTypes.some((type) => head.includes(type));
  if (!isNamed && !lastWords.some((word) => found.includes(word))) return 'other';
  const { event, data } = parseEvent(found.toString('utf8'));
  if (errorOf(event, data ?? '') !== null) return 'failed';
  const body = parseObject(data ?? '');
  return body !== null && doneTypes.includes(textOrNull(body.type) ?? event ?? '') ? 'done' : 'other';
}

/** True for a comment, for `[DONE]` and for nothing. */
function isEmpty(text: string): boolean {
  const { data } = parseEvent(text);
  return data === null || data === '' || data.trim() === '[DONE]';
}

/** The error that an event is, or null. */
function errorOf(event: string | null, data: string): GatewayError | null {
  const body = parseObject(data);
  if (body === null) return event === 'error' ? new GatewayError('upstream_error', data || null) : null;
  const error = upstreamError(body.error);
  if (error !== null) return error;
  if (event !== 'error' && body.type !== 'error') return null;
  return upstreamError(body);
}
