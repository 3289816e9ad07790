import type { StreamEnding } from '../../conversation/manner.js';
import { GatewayError } from '../../errors.js';
import { objectAfterKey } from '../../wire/json-object.js';
import { firstEventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { lastUsage, usageAt } from './usage.js';

const usageKey = Buffer.from('"usage"');
/** How many of a stream's last events tell how it ended: the last choice, its usage, and `[DONE]`, with some room. */
const finalEvents = 4;
/** In the remains of an event that the tail cut into. A quoted key cannot occur inside a string. */
const finishedKey = Buffer.from('"finish_reason":"');

type Parsed = { readonly [key: string]: unknown };

/** Judges the first events of a chat stream; see `StreamManner.judgeStart`. */
export function judgeStart(run: Buffer): 'silence' | 'meaningful' | GatewayError {
  for (let start = 0; start < run.length; ) {
    const next = firstEventEnd(run, start, run.length);
    const end = next === -1 ? run.length : next;
    const { event, data } = parseEvent(run.toString('utf8', start, end));
    if (data !== null) return judgeEvent(event, data);
    start = end;
  }
  return 'silence';
}

function judgeEvent(event: string | null, data: string): 'meaningful' | GatewayError {
  if (data.trim() === '[DONE]') return 'meaningful';
  const chunk = parseObject(data);
  if (chunk === null) return notChat('an event that is not a JSON object');
  if (isObject(chunk.error)) return errorOf(chunk.error);
  if (typeof chunk.type === 'string' && !('choices' in chunk))
    return notChat(`an event of type ${chunk.type}`);
  if (Array.isArray(chunk.choices) || 'choices' in chunk || chunk.object === 'chat.completion.chunk')
    return 'meaningful';
  return notChat(event === null ? 'an event without choices' : `an event named ${event}`);
}

/** Judges the end of a chat stream by its last bytes; see `StreamManner.judgeEnd`. */
export function judgeEnd(tail: Buffer): StreamEnding {
  const usage = lastUsage(tail);
  let state: 'complete' | 'incomplete' = 'incomplete';
  for (let end = tail.length, looked = 0; end > 0 && looked < finalEvents; looked++) {
    const start = lastEventEnd(tail, 0, Math.max(0, end - 2));
    const { data } = parseEvent(tail.toString('utf8', start, end));
    const chunk = data === null || data === '[DONE]' ? null : parseObject(data);
    if (data === '[DONE]') state = 'complete';
    else if (chunk === null) {
      if (start === 0 && tail.subarray(0, end).includes(finishedKey)) state = 'complete';
    } else if (isObject(chunk.error)) {
      return { state: 'failed', usage };
    } else if (Array.isArray(chunk.choices) && chunk.choices.some(hasFinished)) {
      return { state: 'complete', usage };
    }
    end = start;
  }
  return { state, usage };
}

/** Finds the chunk with `choices: []` and a `usage` object; see `StreamManner.findUsageEvent`. */
export function findUsageEvent(run: Buffer): { start: number; end: number } | null {
  for (let at = run.indexOf(usageKey); at !== -1; at = run.indexOf(usageKey, at + usageKey.length)) {
    const value = objectAfterKey(run, at, usageKey.length);
    if (value === -1) continue;
    const start = lastEventEnd(run, 0, at);
    const next = firstEventEnd(run, at, run.length);
    const end = next === -1 ? run.length : next;
    const chunk = parseObject(parseEvent(run.toString('utf8', start, end)).data ?? '');
    if (chunk === null || !Array.isArray(chunk.choices) || chunk.choices.length > 0) continue;
    if (usageAt(run, value) !== null) return { start, end };
  }
  return null;
}

function hasFinished(choice: unknown): boolean {
  return isObject(choice) && typeof choice.finish_reason === 'string';
}

function errorOf(error: Parsed): GatewayError {
  const message = typeof error.message === 'string' ? error.message : 'The upstream answered with an error.';
  const code = error.code ?? error.type;
  if (code === 429 || code === 'rate_limit_exceeded' || code === 'rate_limit_error')
    return new GatewayError('rate_limit_exceeded', message);
  return new GatewayError('upstream_error', message);
}

function notChat(what: string): GatewayError {
  return new GatewayError(
    'unsupported_stream_event',
    `The upstream's stream is not of the chat protocol: it began with ${what}.`,
  );
}

function parseObject(text: string): Parsed | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Parsed {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
