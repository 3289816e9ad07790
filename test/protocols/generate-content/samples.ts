import type { StreamEvent } from '../../../src/conversation/answer.js';
import type { AnswerContext, TargetOptions } from '../../../src/conversation/codec.js';
import type { ConversationRequest, Turn } from '../../../src/conversation/request.js';
import { tagSignature } from '../../../src/conversation/signature.js';
import type { Usage } from '../../../src/conversation/usage.js';
import { generateContentCodec } from '../../../src/protocols/generate-content/index.js';
import { generateContentRequest } from '../../../src/protocols/generate-content/request/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plainContext, plainSource, plainTarget } from '../../conversation/plain.js';
import { writeRequest } from '../write-request.js';

export const sealer = { seal: (text: string) => text, open: (text: string) => text };

export const target: TargetOptions = { ...plainTarget, model: 'g' };

export const context: AnswerContext = { ...plainContext, id: 'r', requestId: 'req_r', model: 'g', sealer };

export const usage: Usage = { input: 1, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 };

/** The token in which a client carries a signature of a model of this protocol. */
export const token = (value: string) =>
  tagSignature({ protocol: 'generateContent', model: 'g', value, redacted: false });

export const foreignToken = tagSignature({
  protocol: 'messages',
  model: 'c',
  value: 'x',
  redacted: false,
});

export const user = (text: string): JsonObject => ({ role: 'user', parts: [{ text }] });

export function decode(body: JsonObject, stream = false): ConversationRequest {
  const whole = { contents: [user('hi')], ...body };
  if (!generateContentRequest.check(whole)) throw generateContentRequest.explain(whole);
  return generateContentCodec.decodeRequest(whole, stream, sealer);
}

/** A request of a chat client that has what is given, and nothing else. */
export function request(given: Partial<ConversationRequest>): ConversationRequest {
  return { ...decode({}), from: 'chat', ...given };
}

export function encode(
  given: Partial<ConversationRequest>,
  options: Partial<TargetOptions> = {},
): JsonObject {
  return JSON.parse(
    writeRequest(generateContentCodec, request(given), { ...target, ...options }),
  ) as JsonObject;
}

export function encodeTurns(turns: readonly Turn[], options: Partial<TargetOptions> = {}): unknown {
  return encode({ turns }, options).contents;
}

/** What the decoder makes of blocks, with the end of the bytes after them. */
export function decodeBlocks(...blocks: readonly (JsonObject | string)[]): StreamEvent[] {
  const decoder = generateContentCodec.createDecoder({ ...plainSource, model: 'g' });
  const out: StreamEvent[] = [];
  for (const block of blocks)
    decoder.decode(null, typeof block === 'string' ? block : JSON.stringify(block), out);
  decoder.finish(out);
  return out;
}

export function encodeEvents(events: readonly StreamEvent[], of: Partial<AnswerContext> = {}): string {
  const encoder = generateContentCodec.createEncoder({ ...context, ...of });
  return events.map((event) => encoder.encode(event)).join('');
}

/** The objects of a stream's text. */
export function blocksOf(text: string): JsonObject[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice('data: '.length)) as JsonObject);
}
