import type { TextProtocolName } from '../../src/conversation/request.js';
import type { JsonObject } from '../../src/wire/json.js';
import { rule } from '../suites/translation/client.js';

interface ServerEvent {
  /** The `event` field, or null. */
  readonly event: string | null;
  /** The `data` field. */
  readonly data: string;
}

/**
 * Reads a whole stream as strictly as the strictest SDK: at most one `event` line, before exactly one `data` line, a
 * blank line after every event and after the last, comments in blocks of their own.
 */
export function readEvents(text: string): readonly ServerEvent[] {
  rule(text.endsWith('\n\n') && !text.endsWith('\n\n\n'), 'it ends with one blank line');
  rule(!text.includes('\r'), 'lines end with LF');
  const events: ServerEvent[] = [];
  for (const block of text.slice(0, -2).split('\n\n')) {
    const lines = block.split('\n');
    if (lines.every((line) => line.startsWith(':'))) continue;
    const named = lines.length === 2;
    const [event, data] = named ? lines : [null, lines[0]];
    rule(
      lines.length <= 2 && data?.startsWith('data: ') === true,
      `one data line, not ${block.slice(0, 200)}`,
    );
    rule(!named || event?.startsWith('event: ') === true, `an event line before the data, not ${event}`);
    events.push({ event: event?.slice('event: '.length) ?? null, data: data.slice('data: '.length) });
  }
  return events;
}

/** Returns the parsed data of an event. @throws Error if it is not JSON */
export function readData({ data }: ServerEvent): unknown {
  try {
    return JSON.parse(data) as unknown;
  } catch {
    throw new Error(`the stream breaks a rule: data is JSON, not ${data.slice(0, 200)}`);
  }
}

/** Returns the bytes of an event in the framing of a protocol's vendor. @param data a string is written as it is */
export function framed(protocol: TextProtocolName, data: JsonObject | string): string {
  if (typeof data === 'string') return `data: ${data}\n\n`;
  return protocol === 'messages' || protocol === 'responses' ? named(data) : unnamed(data);
}

/** Returns the bytes of an event with a name. */
export function named(data: JsonObject): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Returns the bytes of an event without a name. */
export function unnamed(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
