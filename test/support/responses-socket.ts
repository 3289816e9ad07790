import { once } from 'node:events';
import type { Test } from 'tap';
import { WebSocket } from 'ws';
import type { Responses } from './sdks/openai-responses.js';

export interface Event {
  readonly type: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly sequence_number?: number;
  readonly error?: Readonly<Record<string, unknown>>;
  readonly response?: Responses;
}

interface Raw {
  readonly socket: WebSocket;
  send(message: unknown): void;
  /** The events up to the end of the next answer. */
  answer(): Promise<readonly Event[]>;
}

const last = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error']);

/** Opens a WebSocket for responses, which ends with its test. */
export async function connect(t: Test, url: string, headers: Record<string, string> = bearer): Promise<Raw> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, { headers });
  t.teardown(() => socket.terminate());
  const answers: (readonly Event[])[] = [];
  const waiting: ((events: readonly Event[]) => void)[] = [];
  let events: Event[] = [];
  socket.on('message', (data) => {
    const event = JSON.parse(data.toString()) as Event;
    events.push(event);
    if (!last.has(event.type)) return;
    const take = waiting.shift();
    if (take === undefined) answers.push(events);
    else take(events);
    events = [];
  });
  await once(socket, 'open');
  return {
    socket,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    answer: () =>
      new Promise((resolve) => {
        const known = answers.shift();
        if (known === undefined) waiting.push(resolve);
        else resolve(known);
      }),
  };
}

export const bearer = { authorization: 'Bearer sk-demo', 'openai-beta': 'responses_websockets=2026-02-06' };
/** Returns the message that creates a response. */
export const create = (fields: object) => ({ type: 'response.create', model: 'sim-text', ...fields });
