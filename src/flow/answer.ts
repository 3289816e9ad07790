import type { ResponseHead } from '../upstream/client.js';
import type { Call } from './call.js';
import { timingLine } from './timing.js';

/** Answer headers of an upstream that mean something to its caller's SDK. */
const passedNames = new Set([
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'openai-processing-ms',
  'openai-version',
]);
const passedPrefix = 'x-ratelimit-';

/** Header lines of an answer that hands on an upstream's, each with CRLF before it. */
export function answerLines(call: Call, head: ResponseHead): string {
  let lines = `\r\nx-gateway-path: ${call.path}`;
  const { fields } = head;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name === 'content-type' || passedNames.has(name) || name.startsWith(passedPrefix))
      lines += `\r\n${name}: ${fields[i + 1]}`;
    else if (name === 'x-request-id') lines += `\r\nx-upstream-request-id: ${fields[i + 1]}`;
  }
  return lines + timingLine(call);
}

/** Header lines of an event stream, each with CRLF before it. `head` is null when the upstream is still silent. */
export function streamLines(call: Call, head: ResponseHead | null): string {
  let lines =
    '\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no' +
    `\r\nx-gateway-path: ${call.path}`;
  const fields = head === null ? [] : head.fields;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.startsWith(passedPrefix) || name === 'openai-processing-ms' || name === 'openai-version')
      lines += `\r\n${name}: ${fields[i + 1]}`;
    else if (name === 'x-request-id') lines += `\r\nx-upstream-request-id: ${fields[i + 1]}`;
  }
  return lines + timingLine(call);
}
