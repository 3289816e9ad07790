import type { ResponseHead } from '../upstream/client.js';
import type { Call } from './call.js';
import { timingLine } from './timing.js';

/**
 * The line under which an upstream's answer header is handed on, or an empty string for one that stays here: what
 * SDKs read of it passes, and its request id beside ours.
 */
function passedLine(name: string, value: string): string {
  // Told apart by first letters: looking strings up that were cut a moment ago means hashing every one of them.
  switch (name.charCodeAt(0)) {
    case 0x72: // r
      return name === 'retry-after' || name === 'retry-after-ms' ? `\r\n${name}: ${value}` : '';
    case 0x78: // x
      if (name === 'x-request-id') return `\r\nx-upstream-request-id: ${value}`;
      return name === 'x-should-retry' || name.startsWith('x-ratelimit-') ? `\r\n${name}: ${value}` : '';
    case 0x6f: // o
      return name === 'openai-processing-ms' || name === 'openai-version' ? `\r\n${name}: ${value}` : '';
    default:
      return '';
  }
}

function passedLines(head: ResponseHead): string {
  const { fields } = head;
  let lines = '';
  for (let i = 0; i < fields.length; i += 2)
    lines += passedLine(fields[i] as string, fields[i + 1] as string);
  return lines;
}

/** Header lines of a JSON answer of the gateway's own, each with CRLF before it, but for its timing. */
export function ownLines({ dialect, exchange }: Call): string {
  const type = '\r\ncontent-type: application/json';
  return dialect.requestIdHeader === null ? type : `${type}\r\n${dialect.requestIdHeader}: ${exchange.id}`;
}

/** Header lines of an answer that hands on an upstream's, each with CRLF before it. */
export function answerLines(call: Call, head: ResponseHead): string {
  const { contentType: type } = head;
  return (
    `\r\nx-gateway-path: ${call.path}` +
    (type === null ? '' : `\r\ncontent-type: ${type}`) +
    passedLines(head) +
    timingLine(call)
  );
}

/** Header lines of an event stream, each with CRLF before it. `head` is null when the upstream is still silent. */
export function streamLines(call: Call, head: ResponseHead | null): string {
  return (
    '\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no' +
    `\r\nx-gateway-path: ${call.path}` +
    (head === null ? '' : passedLines(head)) +
    timingLine(call)
  );
}
