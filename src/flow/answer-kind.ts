import { GatewayError } from '../errors.js';
import type { Passage } from '../stream/passage.js';
import type { ResponseHead } from '../upstream/client.js';
import { parseEvent } from '../wire/sse.js';
import type { Outcome } from './call.js';

/** Why an answer is of no use for a call, or null. */
export function answerRefusal(head: ResponseHead, streamed: boolean): GatewayError | null {
  if (head.status >= 300 && head.status < 400)
    return new GatewayError('upstream_error', 'The upstream answered with a redirect.');
  // What the client could decode was decoded there, and its header is gone.
  const coding = head.get('content-encoding');
  if (coding !== null && coding.toLowerCase() !== 'identity')
    return new GatewayError('upstream_error', 'The upstream compressed its answer in an unknown way.');
  if (head.status >= 400 || streamed === isEventStream(head)) return null;
  return new GatewayError(
    'unsupported_stream_event',
    streamed
      ? 'A stream was asked for, and the upstream answered with something else.'
      : 'The upstream answered with a stream that was not asked for.',
  );
}

/** Whether a good answer is kept until all of it is there; else it leaves piece by piece. */
export function leavesWhole(head: ResponseHead, passage: Passage): boolean {
  return head.contentLength <= passage.wholeBytes && !(passage.divisible && isMedia(head));
}

/** How a call ended whose upstream's answer was handed on whole. */
export function answerOutcome(head: ResponseHead | null): Outcome {
  return (head?.status ?? 0) >= 400 ? 'upstream_error' : 'complete';
}

/** True for an answer that is neither text nor JSON: there is nothing in it to read or to change. */
function isMedia(head: ResponseHead): boolean {
  const type = head.contentType;
  if (type === null || type === 'application/json') return false;
  return /^(?:audio|image|video)\/|^application\/octet-stream/i.test(type);
}

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
