import { once } from 'node:events';
import { request } from 'node:http';
import type { Test } from 'tap';
import WebSocket from 'ws';
import type { Simulator } from '../../../src/simulator/server.js';

/** A server event, as loose as a test wants it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape
type Event = Record<string, any>;

export interface Client {
  readonly socket: WebSocket;
  /** Every event so far. */
  readonly events: readonly Event[];
  send(event: object | string): void;
  /** The next event of a type that has not been asked for; those before it are skipped. */
  next(type: string): Promise<Event>;
  /** Types from the event of one type on, runs of one type once. */
  typesFrom(type: string): string[];
  /** Code and reason of the close. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

export const betaHeaders = { 'openai-beta': 'realtime=v1' };

/** Opens a socket that ends with its test, and hears of it from the first event on. */
export async function connect(
  t: Test,
  simulator: Simulator,
  path = '/realtime?model=sim-realtime',
  options: { readonly headers?: Record<string, string>; readonly protocols?: string[] } = {},
): Promise<Client> {
  const url = simulator.url.replace('http', 'ws') + path;
  const socket = new WebSocket(url, options.protocols ?? [], { headers: options.headers });
  t.teardown(() => socket.terminate());
  const events: Event[] = [];
  let asked = 0;
  let heard = (): void => undefined;
  socket.on('message', (message: Buffer, isBinary) => {
    if (!isBinary && message[0] === 0x7b) {
      events.push(JSON.parse(message.toString()));
      heard();
    }
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  socket.on('error', () => undefined);
  await once(socket, 'open');
  const find = (type: string): Event | undefined => {
    const at = events.findIndex((event, index) => index >= asked && event.type === type);
    asked = at < 0 ? asked : at + 1;
    return events[at];
  };
  return {
    socket,
    events,
    closed,
    send: (event) => socket.send(typeof event === 'string' ? event : JSON.stringify(event)),
    async next(type) {
      for (;;) {
        const found = find(type);
        if (found !== undefined) {
          return found;
        }
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
    },
    typesFrom(type) {
      const types = events.slice(events.findIndex((event) => event.type === type)).map((event) => event.type);
      return types.filter((each, index) => each !== types[index - 1]);
    },
  };
}

/** A user's text as an event. */
export function says(text: string): object {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  return { type: 'conversation.item.create', item };
}

export const respond = { type: 'response.create' };
export const textOnly = {
  type: 'session.update',
  session: { type: 'realtime', output_modalities: ['text'] },
};
export const betaTextOnly = { type: 'session.update', session: { modalities: ['text'] } };

interface Refusal {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

/** Asks for a socket and hears the refusal. */
export function refused(
  simulator: Simulator,
  path: string,
  headers: Record<string, string> = {},
): Promise<Refusal> {
  return new Promise((resolve, reject) => {
    const asked = request(simulator.url + path, {
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
        ...headers,
      },
    });
    asked.on('response', async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) {
        chunks.push(chunk);
      }
      const text = Buffer.concat(chunks).toString();
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
    });
    asked.on('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('The socket was opened.'));
    });
    asked.on('error', reject);
    asked.end();
  });
}
