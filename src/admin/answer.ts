import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../errors.js';

/** Bodies of most requests are a few settings. */
const usualBodyBytes = 64 * 1024;

/** What an operator's request is answered with. */
export interface AdminAnswer {
  readonly status: number;
  readonly contentType: string;
  /** All of it, pieces of one that is too long to be held, or what takes the response over once its head has left. */
  readonly body: string | AsyncIterable<string | Uint8Array> | ((response: ServerResponse) => void);
  readonly headers?: Readonly<Record<string, string>>;
}

export const jsonType = 'application/json';

export function json(value: unknown, status = 200): AdminAnswer {
  return { status, contentType: jsonType, body: `${JSON.stringify(value)}\n` };
}

/** What is wrong with a request, as a sentence. @param param that is at fault */
export function invalid(param: string, sentence: string): GatewayError {
  return new GatewayError('invalid_value', sentence, { param });
}

/** The same in words that follow the name of what is at fault. */
export function wrong(member: string, words: string): GatewayError {
  return invalid(member, `${member} ${words}.`);
}

export function wrongCursor(): GatewayError {
  return invalid('cursor', 'The cursor must be the "next" of the page before.');
}

/**
 * How many entries of a list a request wants at most.
 * @throws {GatewayError} of status 400
 */
export function readLimit(query: URLSearchParams, usual: number, longest: number): number {
  const text = query.get('limit');
  if (text === null) return usual;
  const isNumber = /^\d+$/.test(text) && text.length <= `${longest}`.length;
  const limit = isNumber ? Number(text) : 0;
  if (limit >= 1 && limit <= longest) return limit;
  throw wrong('limit', `must be a number from 1 to ${longest}`);
}

/** A time as operators read it: RFC 3339. @param time Unix milliseconds */
export function dateTime(time: number): string {
  return new Date(time).toISOString();
}

/** The answer for an error, in the form of the chat-family endpoints. */
export function errorAnswer(error: GatewayError): AdminAnswer {
  const { message, param, code, kind } = error;
  const headers: Record<string, string> =
    error.retryAfter === null ? {} : { 'retry-after': `${error.retryAfter}` };
  if (error.allow !== null) headers.allow = error.allow;
  return { ...json({ error: { message, type: kind, param, code } }, error.status), headers };
}

/**
 * Sends an answer, and waits for a client that does not keep up.
 * @throws whatever the body's source throws; the connection is destroyed then
 */
export async function send(response: ServerResponse, answer: AdminAnswer): Promise<void> {
  const { status, contentType, body, headers } = answer;
  response.writeHead(status, {
    'content-type': contentType,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  if (typeof body === 'string') {
    response.end(body);
    return;
  }
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  // The first piece may be a while in coming.
  response.flushHeaders();
  try {
    if (typeof body === 'function') {
      body(response);
      return;
    }
    for await (const piece of body) {
      if (response.destroyed) return;
      if (!response.write(piece)) await drained(response);
    }
    response.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

/**
 * Reads a JSON object from a request's body; an empty body is an empty object.
 * @param most bytes that the body may have
 * @throws {GatewayError} of status 400 or 413; of 400, too, where the client leaves within it, which then hears nothing
 */
export async function readObject(
  request: IncomingMessage,
  most = usualBodyBytes,
): Promise<Record<string, unknown>> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      size += piece.length;
      // What is too much is read all the same: a connection with half a request on it could not be used again.
      if (size <= most) pieces.push(piece);
      else pieces.length = 0;
    }
  } catch (error) {
    if (request.complete) throw error;
    throw new GatewayError('invalid_request', 'The request ended before its body was complete.', {
      cause: error,
    });
  }
  if (size > most) throw new GatewayError('request_too_large');
  if (size === 0) return {};
  try {
    const value: unknown = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    throw new GatewayError('invalid_json');
  }
  throw new GatewayError('invalid_json', 'The request body is not a JSON object.');
}
