import { ask } from '../api.js';
import { logEvent } from './event-log.js';
import type { GatewayRequest } from './gateway-request.js';
import { isObject, parseJson } from './json.js';
import type { CallRecord } from './record.js';

/** The gateway's answer, passed on by the relay. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Response;
}

/**
 * Sends a request to the gateway through the admin listener, the only host that the page may connect to.
 * @param key key of the gateway
 * @throws {ApiError} without an answer of the gateway
 */
export async function relay(request: GatewayRequest, key: string, signal: AbortSignal): Promise<Answer> {
  const { method, path, headers, body } = request;
  const response = await ask('/playground', {
    method: 'POST',
    body: { method, path, key, headers, body: body === null ? null : JSON.stringify(body) },
    signal,
  });
  return {
    status: Number(response.headers.get('x-answer-status') ?? response.status),
    headers: readHeaders(response.headers.get('x-answer-headers') ?? ''),
    body: response,
  };
}

/**
 * Logs a body as one event.
 * @param text text of the body, or a description of it
 */
export function logBody(record: CallRecord, sentAt: number, name: string, text: string): void {
  logEvent(record.log, { atMs: performance.now() - sentAt, name, data: text });
}

/** Thrown for a body beyond the bound. */
class TooLarge extends Error {}

/**
 * Reads a whole body.
 * @throws {TooLarge} for a larger body
 */
export async function readBlob(response: Response, mostBytes: number): Promise<Blob> {
  const type = response.headers.get('content-type') ?? '';
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  // Not every browser supports iteration over a stream.
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    size += read.value.length;
    if (size > mostBytes) {
      void reader?.cancel().catch(() => {});
      throw new TooLarge(`The answer is larger than ${mostBytes / 1_048_576} MiB.`);
    }
    pieces.push(read.value);
  }
  return new Blob(pieces, { type });
}

function readHeaders(encoded: string): Record<string, string> {
  let text = '';
  try {
    text = decodeURIComponent(encoded);
  } catch {
    return {};
  }
  const value = parseJson(text);
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.toLowerCase(), `${each}`]));
}
