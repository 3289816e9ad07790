import { isSignOfLife } from '../../../conversation/event-protocol.js';
import {
  marksOf,
  type StreamEnding,
  type StreamFacts,
  type StreamRepeat,
  type StreamStart,
} from '../../../conversation/stream-rules.js';
import { COLON, CR, LF, SPACE } from '../../../wire/bytes.js';
import { parseObject, textOrNull } from '../../../wire/json.js';
import { wholeNumber } from '../../../wire/json-numbers.js';
import { afterColon, withoutMembers } from '../../../wire/json-skip.js';
import { eventEnd, eventObject, eventStart, finalEvents, parseEvent } from '../../../wire/sse.js';
import { brokenEvent, foreignEvent } from '../../error-formats/upstream-error.js';
import { usageOfStream } from '../answer/usage.js';
import { classifyEvent, upstreamError } from '../upstream-error.js';

/** Bytes at either end of the data of an event without an `event:` line that are searched. */
const edgeBytes = 512;

/** Types of a stream's last event. Some upstreams add `[DONE]`, which has no meaning. */
const terminalTypes: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

/** An event that ends a stream contains one of these. A quoted text cannot occur inside another one. */
const lastWords = [...terminalTypes, 'error'].map((type) => Buffer.from(`"${type}"`));

/** A quoted key cannot occur inside a string. */
const numberKey = Buffer.from('"sequence_number"');

/** See `StreamRules.marks`. */
export const marks = marksOf('"response.');

/** Types of events that only open an answer. */
const openingTypes: ReadonlySet<unknown> = new Set([
  'response.created',
  'response.queued',
  'response.in_progress',
]);

/** Judges the first events of a responses stream; see `StreamRules.judgeStart`. */
export function judgeStart(run: Buffer): StreamStart {
  return judgeEvents(run, false);
}

/** Judges them likewise, but waits for content; see `StreamRules.judgeContent`. */
export function judgeContent(run: Buffer): StreamStart {
  return judgeEvents(run, true);
}

function judgeEvents(run: Buffer, awaitsContent: boolean): StreamStart {
  for (let start = 0; start < run.length; ) {
    const end = eventEnd(run, start);
    const judged = judgeEvent(run, start, end);
    const isOpening = awaitsContent && judged === 'meaningful' && openingTypes.has(typeOf(run, start, end));
    if (judged !== 'silence' && !isOpening) return judged;
    start = end;
  }
  return 'silence';
}

/** Returns the length of the events and comments at the start of a run that only open the answer; see `StreamRules.openedBy`. */
export function openedBy(run: Buffer): number {
  let start = 0;
  while (start < run.length) {
    const end = eventEnd(run, start);
    const type = typeOf(run, start, end);
    if (type !== '' && !openingTypes.has(type)) break;
    start = end;
  }
  return start;
}

function typeOf(run: Buffer, start: number, end: number): unknown {
  return nameOf(run, start, end) ?? eventObject(run, start, end)?.type;
}

function judgeEvent(run: Buffer, start: number, end: number): StreamStart {
  const named = nameOf(run, start, end);
  // The first event repeats the request's tools and instructions. It is parsed only if its name does not suffice.
  if (named?.startsWith('response.') && named !== 'response.failed') return 'meaningful';
  const { event, data } = parseEvent(run.toString('utf8', start, end));
  if (data === null) return 'silence';
  const body = parseObject(data);
  if (body === null) return isSignOfLife(event, data) ? 'silence' : brokenEvent('responses');
  const type = textOrNull(body.type) ?? event;
  switch (classifyEvent(type, body)) {
    case 'known':
      return 'meaningful';
    case 'silence':
      return 'silence';
    case 'failure':
      return upstreamError(body);
    case 'foreign':
      return foreignEvent('responses', type);
  }
}

/** Tells whether a run of events ends with the stream's last one; see `StreamRules.marksEnd`. */
export function marksEnd(run: Buffer): boolean {
  return lastWord(run, false) !== null;
}

/** Returns the `sequence_number` of the last event that has one; see `StreamRules.lastNumber`. */
export function lastNumber(bytes: Buffer): number | null {
  let at = bytes.lastIndexOf(numberKey);
  while (at !== -1) {
    const value = afterColon(bytes, at + numberKey.length - 1);
    const number = value === -1 ? -1 : wholeNumber(bytes, value);
    if (number !== -1) return number;
    at = at === 0 ? -1 : bytes.lastIndexOf(numberKey, at - 1);
  }
  return null;
}

/** Judges the end of a responses stream; see `StreamRules.judgeEnd`. */
export function judgeEnd(tail: Buffer, facts: StreamFacts): StreamEnding {
  const word = lastWord(tail, true);
  const usage = usageOfStream(tail);
  if (word === null) return { state: facts.ended ? 'complete' : 'incomplete', usage, error: null };
  const isFailed = word.type === 'error' || word.type === 'response.failed';
  if (!isFailed) return { state: 'complete', usage, error: null };
  return { state: 'failed', usage, error: upstreamError(eventObject(tail, word.start, word.end) ?? {}) };
}

/** See `StreamRules.repeat`. */
export const repeat: StreamRepeat = {
  start: (run) => lastWord(run, false)?.start ?? run.length,
  answer: (event) => eventObject(event, 0, event.length)?.response,
};

const ofResponse = new Set(['response']);

/**
 * Returns the response in the event that ends a run and its stream.
 * @param withFailed also returns a response that has failed
 * @returns JSON text; null if there is no such event
 */
export function endedResponse(run: Buffer, withFailed: boolean): Buffer | null {
  const word = lastWord(run, false);
  if (word === null || (word.type === 'response.failed' && !withFailed)) return null;
  const { data } = parseEvent(run.toString('utf8', word.start, word.end));
  const response = withoutMembers(Buffer.from(data ?? ''), ofResponse)?.taken.get('response');
  return response === undefined ? null : Buffer.from(response);
}

/** An event that ends a stream, by its type and place. */
interface LastWord {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the event that ends the stream among the last events of `bytes`; null if there is none. An error event counts
 * if `withErrors` is true, whatever stands before it. `lastEvents` is not used, since it would make a generator for
 * each run of events.
 */
function lastWord(bytes: Buffer, withErrors: boolean): LastWord | null {
  for (let end = bytes.length, looked = 0; end > 0 && looked < finalEvents; looked++) {
    const start = eventStart(bytes, end);
    const name = nameOf(bytes, start, end);
    if (name?.startsWith('response.'))
      return terminalTypes.includes(name) ? { type: name, start, end } : null;
    const type = name === '' || name === 'error' ? name : wordOf(bytes, start, end);
    if (type !== '' && (withErrors || type !== 'error')) return { type, start, end };
    end = start;
  }
  return null;
}

/**
 * Returns the name in the `event:` line that begins an event, after any comments. Empty for a comment or `[DONE]`; null
 * for an event that begins with its data.
 */
function nameOf(bytes: Buffer, start: number, end: number): string | null {
  const first = afterComments(bytes, start, end);
  if (first === end) return '';
  const head = bytes.toString('latin1', first, Math.min(end, first + 128));
  if (head.startsWith('event:')) {
    const lineEnd = head.indexOf('\n');
    const name = head.slice('event:'.length, lineEnd === -1 ? undefined : lineEnd).trim();
    return name === '' ? null : name;
  }
  return head.slice('data:'.length).trim() === '[DONE]' ? '' : null;
}

function afterComments(bytes: Buffer, start: number, end: number): number {
  for (let at = start; ; ) {
    while (at < end && (bytes[at] as number) <= SPACE) at++;
    if (at >= end || bytes[at] !== COLON) return at;
    while (at < end && bytes[at] !== LF && bytes[at] !== CR) at++;
  }
}

/**
 * Returns the type of an event that ends a stream, from its data; empty for any other. A match at the edges of the data
 * may belong to an item in it, so the data is then parsed.
 */
function wordOf(bytes: Buffer, start: number, end: number): string {
  const first = bytes.subarray(start, Math.min(end, start + edgeBytes));
  const last = bytes.subarray(Math.max(start, end - edgeBytes), end);
  if (!lastWords.some((word) => first.includes(word) || last.includes(word))) return '';
  const body = eventObject(bytes, start, end);
  if (body === null) return '';
  const type = textOrNull(body.type);
  if (type !== null && terminalTypes.includes(type)) return type;
  return classifyEvent(type, body) === 'failure' ? 'error' : '';
}
