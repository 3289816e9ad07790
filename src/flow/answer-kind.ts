import type { ResponseHead } from '../upstream/client.js';
import { parseEvent } from '../wire/sse.js';

/** True for an answer that says it is an event stream. */
export function isEventStream(head: ResponseHead): boolean {
  const type = head.contentType;
  if (type === null || type === 'application/json') return false;
  return type.toLowerCase().startsWith('text/event-stream');
}

/** Some upstreams leave out the blank line behind their last event; what was cut short is no event. */
export function isWholeEvent(rest: Buffer): boolean {
  const { data } = parseEvent(rest.toString('utf8'));
  if (data === null || data === '[DONE]') return data !== null;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}
