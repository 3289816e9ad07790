import type { JsonObject } from '../../src/wire/json.js';
import { soon } from './eventually.js';
import { testKey } from './gateway.js';
import { postJson } from './post-json.js';
import { chatEvent, chunk, doneEvent, lastChunk, streamHead, usageEvent } from './upstream.js';

/** The part of a config by which conversations are kept in a folder. */
export function keptIn(path: string, conversations: object | 'off' = {}): Record<string, unknown> {
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
  const answer = await postJson(url + path, { model: 'm', ...body }, { authorization: `Bearer ${key}` });
  return {
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as JsonObject,
  };
}

/** The stream of a response, as a client reads it. */
export interface ResponseStream {
  /** Reads on until the text holds what is given, or has ended. @returns all of it */
  until(part: string | RegExp): Promise<string>;
  /** Reads to the end. @returns all of it */
  rest(): Promise<string>;
  /** Leaves. */
  cancel(): Promise<void>;
  /** What was read so far. */
  readonly text: string;
}

/** Asks for a response of the model `m` as a stream. @returns when its head is there */
export async function streamResponse({ url }: At, body: object): Promise<ResponseStream> {
  const answer = await postJson(`${url}/v1/responses`, { model: 'm', stream: true, ...body });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) throw new Error('there is no stream');
  let text = '';
  const read = async (isEnough: () => boolean): Promise<string> => {
    while (!isEnough()) {
      const { done, value } = await soon(
        reader.read(),
        `more of a stream that began with ${text.slice(0, 500)}`,
      );
      if (done) break;
      text += value;
    }
    return text;
  };
  return {
    until: (part) => read(() => (typeof part === 'string' ? text.includes(part) : part.test(text))),
    rest: () => read(() => false),
    cancel: () => reader.cancel(),
    get text() {
      return text;
    },
  };
}

/** An upstream's answers: one for calls that ask for a stream, and one for the others. */
export function wholeOrStream(whole: string, stream: string): (request: { readonly body: Buffer }) => string {
  return ({ body }) => (body.includes('"stream":true') ? stream : whole);
}

/** Bytes of a whole stream of a chat upstream that says a text. */
export function chatStream(text: string): string {
  const events =
    chatEvent({ role: 'assistant', content: text }) + chatEvent({}, 'stop') + usageEvent + doneEvent;
  return streamHead + chunk(events) + lastChunk;
}
