import { isServersOwn, isSignOfLife } from '../../../conversation/event-protocol.js';
import {
  judgingContent,
  judgingEvents,
  marksOf,
  type StreamEnding,
  type StreamFacts,
  type StreamStart,
} from '../../../conversation/stream-rules.js';
import type { Usage } from '../../../conversation/usage.js';
import { isObject, parseObject, textOrNull } from '../../../wire/json.js';
import { eventEnd, lastEvents, parseEvent } from '../../../wire/sse.js';
import { brokenEvent } from '../../error-formats/upstream-error.js';
import { lastUsage, usageKey } from '../answer/usage.js';
import { foreignEventOf, isForeign, upstreamError } from '../upstream-error.js';

/** See `StreamRules.marks`. */
export const marks = marksOf('"content_block_', '"message_');

/** Judges the first events of a messages stream; see `StreamRules.judgeStart`. */
export const judgeStart = judgingEvents(judgeEvent);

/** Judges them likewise, but waits for content; see `StreamRules.judgeContent`. */
export const judgeContent = judgingContent(judgeEvent, ({ type, content_block }) => {
  if (type === 'message_start') return true;
  // A call has its name from the start.
  return (
    type === 'content_block_start' &&
    isObject(content_block) &&
    (content_block.text === '' || content_block.thinking === '')
  );
});

function judgeEvent(event: string | null, data: string): StreamStart {
  const body = parseObject(data);
  if (body === null) return isSignOfLife(event, data) ? 'silence' : brokenEvent('messages');
  const type = textOrNull(body.type) ?? event;
  if (type === 'error' || isObject(body.error)) return upstreamError(body);
  if (isForeign(type, body)) return foreignEventOf(type, body);
  return isServersOwn(type, body) ? 'silence' : 'meaningful';
}

/** Judges the end of a messages stream; see `StreamRules.judgeEnd`. */
export function judgeEnd(tail: Buffer, { usageAtStart }: StreamFacts): StreamEnding {
  const usage = totalsIn(tail, usageAtStart);
  let state: StreamEnding['state'] = 'incomplete';
  let isTold = usageAtStart === null;
  for (const { start, end } of lastEvents(tail)) {
    const { event, data } = parseEvent(tail.toString('utf8', start, end));
    const type = event ?? typeOf(data);
    if (type === 'error')
      return { state: 'failed', usage, error: upstreamError(parseObject(data ?? '') ?? {}) };
    if (type === 'message_stop') state = 'complete';
    isTold ||= type !== 'message_start' && lastUsage(tail.subarray(start, end)) !== null;
  }
  // The few output tokens of the first event are not the answer's, whose output was not reported.
  const isCounted = isTold || state !== 'complete' || usage === null;
  return { state, usage: isCounted ? usage : { ...usage, output: 0 }, error: null };
}

/** Reads the totals of the last event that has any. Those that it omits are of the events before. */
function totalsIn(tail: Buffer, atStart: Usage | null): Usage | null {
  let usage = atStart;
  let start = 0;
  for (let at = tail.indexOf(usageKey); at !== -1; at = tail.indexOf(usageKey, start)) {
    const end = eventEnd(tail, at);
    usage = lastUsage(tail.subarray(start, end), usage);
    start = end;
  }
  return usage;
}

function typeOf(data: string | null): string | null {
  const body = data === null ? null : parseObject(data);
  if (body === null) return null;
  return textOrNull(body.type) ?? (isObject(body.error) ? 'error' : null);
}
