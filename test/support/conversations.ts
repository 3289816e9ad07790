import type { JsonObject } from '../../src/wire/json.js';
import { testKey } from './gateway.js';
import { chatEvent, chunk, doneEvent, lastChunk, streamHead, usageEvent } from './upstream.js';

/** The part of a config by which conversations are kept in a folder. */
export function keptIn(path: string, conversations: object = {}): Record<string, unknown> {
  return { store: { kind: 'embedded', path }, conversations };
}

/** A gateway of whatever kind. */
interface At {
  readonly url: string;
}

interface Asked {
  readonly key?: string;
  readonly path?: string;
}

/** Asks for a response of the model `m`. */
export async function askResponse(
  { url }: At,
  body: object,
  { key = testKey, path = '/v1/responses' }: Asked = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: JsonObject }> {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', ...body }),
  });
  return {
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as JsonObject,
  };
}

/** Bytes of a whole stream of a chat upstream that says a text. */
export function chatStream(text: string): string {
  const events =
    chatEvent({ role: 'assistant', content: text }) + chatEvent({}, 'stop') + usageEvent + doneEvent;
  return streamHead + chunk(events) + lastChunk;
}
