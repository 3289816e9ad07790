import type { BlobUrls } from './blob-urls.js';
import type { PlaygroundExchange } from './exchange.js';
import type { GatewayRequest } from './gateway-request.js';
import type { CallRecord } from './record.js';
import { type Answer, logBody, readBlob, relay } from './relay.js';

/** A call of the playground while it runs: what it is made with, and what it fills. */
export interface PlaygroundCall {
  readonly key: string;
  readonly signal: AbortSignal;
  /** Of `performance.now()`. */
  readonly sentAt: number;
  readonly record: CallRecord;
  readonly exchange: PlaygroundExchange;
  readonly urls: BlobUrls;
  /** The gateway's own address, as its answers name it; empty where it is not known. */
  readonly baseUrl: string;
  /** Something of the record is new. */
  onChange(): void;
}

const mostBodyBytes = 64 * 1024 * 1024;
const mostErrorBytes = 1024 * 1024;

/** Sends the first request of a call; its answer's head is the record's. */
export async function begin(call: PlaygroundCall, request: GatewayRequest): Promise<Answer> {
  const answer = await relay(request, call.key, call.signal);
  call.record.firstByteMs = performance.now() - call.sentAt;
  call.record.status = answer.status;
  call.record.headers = answer.headers;
  call.onChange();
  return answer;
}

/**
 * Reads an answer that is text, whole, and logs it.
 * @returns null for an error, which is shown
 */
export async function readText(call: PlaygroundCall, answer: Answer, name: string): Promise<string | null> {
  const isError = answer.status >= 400;
  const blob = await readBlob(answer.body, isError ? mostErrorBytes : mostBodyBytes);
  const text = await blob.text();
  logBody(call.record, call.sentAt, name, text);
  call.onChange();
  if (!isError) return text;
  call.exchange.showRefusal(answer.status, text);
  return null;
}

/** Logs a body that is none to read. */
export function logBlob(call: PlaygroundCall, name: string, blob: Blob): void {
  logBody(call.record, call.sentAt, name, `${blob.size} bytes of ${blob.type || 'no type'}`);
  call.onChange();
}
