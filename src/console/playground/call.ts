import type { BlobUrls } from './blob-urls.js';
import type { PlaygroundExchange } from './exchange.js';
import type { GatewayRequest } from './gateway-request.js';
import type { CallRecord } from './record.js';
import { type Answer, logBody, readBlob, relay } from './relay.js';

/** A running call of the playground: its inputs, and the records that it fills. */
export interface PlaygroundCall {
  readonly key: string;
  readonly signal: AbortSignal;
  /** Time of `performance.now()`. */
  readonly sentAt: number;
  readonly record: CallRecord;
  readonly exchange: PlaygroundExchange;
  readonly urls: BlobUrls;
  /** The gateway's own URL, as its answers name it; empty if unknown. */
  readonly baseUrl: string;
  /** Called when the record has changed. */
  onChange(): void;
}

const maxBodyBytes = 64 * 1024 * 1024;
const maxErrorBytes = 1024 * 1024;

/** Sends the first request of a call, and records the head of its answer. */
export async function begin(call: PlaygroundCall, request: GatewayRequest): Promise<Answer> {
  const answer = await relay(request, call.key, call.signal);
  call.record.firstByteMs = performance.now() - call.sentAt;
  call.record.status = answer.status;
  call.record.headers = answer.headers;
  call.onChange();
  return answer;
}

/**
 * Reads a whole text answer, and logs it.
 * @returns null for an error, which is shown
 */
export async function readText(call: PlaygroundCall, answer: Answer, name: string): Promise<string | null> {
  const isError = answer.status >= 400;
  const blob = await readBlob(answer.body, isError ? maxErrorBytes : maxBodyBytes);
  const text = await blob.text();
  logBody(call.record, call.sentAt, name, text);
  call.onChange();
  if (!isError) return text;
  call.exchange.showRefusal(answer.status, text);
  return null;
}

/** Logs a binary body. */
export function logBlob(call: PlaygroundCall, name: string, blob: Blob): void {
  logBody(call.record, call.sentAt, name, `${blob.size} bytes of ${blob.type || 'no type'}`);
  call.onChange();
}
