import type { Test } from 'tap';
import { textProtocols } from '../../src/conversation/request.js';
import type { StoreWait } from '../../src/flow/services.js';
import { type RunningGateway, startGateway, testKey } from './gateway.js';
import { exchange, type RawAnswer } from './raw-client.js';
import { type Answer, completion, type RawUpstream, startRawUpstream } from './upstream.js';

export { textProtocols };

/** Answers of an upstream in each of the text protocols. */
export const wholeAnswers: Readonly<Record<string, string>> = {
  chat: completion,
  responses: JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', output: [] }),
  messages: JSON.stringify({
    id: 'msg_x',
    type: 'message',
    role: 'assistant',
    model: 'real',
    content: [{ type: 'text', text: 'hello' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 4 },
  }),
  generateContent: JSON.stringify({
    candidates: [{ content: { role: 'model', parts: [{ text: 'hello' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
  }),
};

export interface TranslatedStage extends RunningGateway {
  readonly upstream: RawUpstream;
}

export interface StagePlan {
  /** Default: `chat`. */
  readonly kind?: string;
  readonly answer: Answer;
  /** Protocols of the model. Default: all text protocols. */
  readonly protocols?: readonly string[];
  /** Merged into the model's target. */
  readonly target?: Record<string, unknown>;
  /** Merged into the upstream. */
  readonly upstream?: Record<string, unknown>;
  /** Merged into the config. */
  readonly config?: Record<string, unknown>;
  /** How long calls wait for the store of conversations. */
  readonly storeWait?: StoreWait;
}

/** Starts a gateway whose model `m` is served by a raw upstream of one kind. */
export async function startTranslated(t: Test, plan: StagePlan): Promise<TranslatedStage> {
  const upstream = await startRawUpstream(t, plan.answer);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: plan.protocols ?? textProtocols,
    alias: 'real',
    target: plan.target,
    upstream: { kind: plan.kind ?? 'chat', ...plan.upstream },
    ...(plan.config === undefined ? {} : { config: plan.config }),
    storeWait: plan.storeWait,
  });
  return { ...gateway, upstream };
}

/** Returns the bytes of a request with a body and a key, for any of the text protocols. */
export function postBytes(path: string, body: object, headers = ''): string {
  const text = JSON.stringify(body);
  return (
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nanthropic-version: 2023-06-01\r\n` +
    `content-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

/** Sends a body and reads the answer. */
export function post(port: number, path: string, body: object, headers = ''): Promise<RawAnswer> {
  return exchange(port, postBytes(path, body, headers));
}
