import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../errors.js';

/** Default limit of a request body. Most contain a few settings. */
const usualBodyBytes = 64 * 1024;

/** Response to an operator's request. */
export interface AdminAnswer {
  readonly status: number;
  readonly contentType: string;
  /**
   * The whole text, its pieces if it is too long to hold, or a function that takes over the response once the head is
   * sent.
   */
  readonly body: string | AsyncIterable<string | Uint8Array> | ((response: ServerResponse) => void);
  readonly headers?: Readonly<Record<string, string>>;
}

export const jsonType = 'application/json';

export function json(value: unknown, status = 200): AdminAnswer {
  return { status, contentType: jsonType, body: `${JSON.stringify(value)}\n` };
}

/**
 * Creates the error for an invalid request.
 * @param param the invalid parameter
 */
export function invalid(param: string, sentence: string): GatewayError {
  return new GatewayError('invalid_value', sentence, { param });
}

/** Like `invalid`, with words that follow the parameter's name. */
export function wrong(member: string, words: string): GatewayError {
  return invalid(member, `${member} ${words}.`);
}

/** Longest cursor. Those of the listener are far shorter, and no store takes a key of any length. */
const longestCursor = 1024;

/**
 * Decodes a cursor of a request.
 * @throws {GatewayError} of status 400 if it is too long to be one
 */
export function decodeCursor(text: string): string {
  if (text.length > longestCursor) throw wrongCursor();
  return Buffer.from(text, 'base64url').toString('utf8');
}

export function wrongCursor(): GatewayError {
  return invalid('cursor', 'The cursor must be the "next" of the page before.');
}

/**
 * Reads the maximum number of list entries that a request asks for.
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

/**
 * Formats a time for operators, as RFC 3339.
 * @param time Unix milliseconds
 */
export function dateTime(time: number): string {
  return new Date(time).toISOString();
}

/** Creates the response for an error, in the form of the chat-family endpoints. */
export function errorAnswer(error: GatewayError): AdminAnswer {
  const { message, param, code, kind } = error;
  const headers: Record<string, string> =
    error.retryAfter === null ? {} : { 'retry-after': `${error.retryAfter}` };
  if (error.allow !== null) headers.allow = error.allow;
  return { ...json({ error: { message, type: kind, param, code } }, error.status), headers };
}

/**
 * Sends a response, and waits for a client that reads slowly.
 * @throws whatever the body's source throws, after destroying the connection
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
  // The first piece may take a while.
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
 * Reads a JSON object from a request body. An empty body is an empty object.
 * @param most largest body, in bytes
 * @throws {GatewayError} of status 400 or 413. Also of 400 if the client disconnects during the body, in which case
 * nobody receives it.
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
      // Read an oversized body to its end. Otherwise the connection could not be reused.
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
