import { request } from 'node:http';
import { connect } from 'node:net';
import type { Simulator } from '../../src/simulator/server.js';

export interface Heard {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly bytes: Buffer;
  readonly text: string;
  /** `data:` of each SSE event, in order. */
  readonly events: readonly string[];
  /** Code of the error that ended the answer early, or null. */
  readonly failure: string | null;
}

/** A chat body with one user text. */
export function chat(text: string, more: object = {}): object {
  return { model: 'sim-text', messages: [{ role: 'user', content: text }], ...more };
}

/** Posts a chat body over node:http and hears the answer to its end, good or bad. */
export function ask(
  simulator: Simulator,
  body: object | string,
  headers: Record<string, string> = {},
): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${simulator.url}/chat/completions`,
      { method: 'POST', agent: false, headers },
      (answer) => {
        const chunks: Buffer[] = [];
        const done = (failure: string | null): void => {
          const bytes = Buffer.concat(chunks);
          const text = bytes.toString();
          const events = [...text.matchAll(/^data: (.*)$/gm)].map((match) => match[1] ?? '');
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes, text, events, failure });
        };
        answer.on('data', (chunk) => chunks.push(chunk));
        answer.on('end', () => done(null));
        answer.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message));
      },
    );
    let isAnswered = false;
    sent.on('response', () => {
      isAnswered = true;
    });
    // Of one that comes behind the head, the answer tells by itself.
    sent.on('error', (error) => {
      if (!isAnswered) reject(error);
    });
    sent.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

/** Sends a chat body over a bare socket and returns every byte until the simulator ends the connection. */
export function askRaw(simulator: Simulator, body: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const socket = connect(simulator.port, '127.0.0.1');
    let heard = '';
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1');
    });
    socket.on('end', () => resolve(heard));
    socket.on('error', reject);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: simulator\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  });
}
