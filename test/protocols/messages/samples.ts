import type { StreamEvent } from '../../../src/conversation/answer.js';
import type { AnswerContext, TargetOptions } from '../../../src/conversation/codec.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { tagSignature } from '../../../src/conversation/signature.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { countTokensRequest, messagesRequest } from '../../../src/protocols/messages/request/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plainContext, plainRequest, plainSource, plainTarget } from '../../conversation/plain.js';
import { writeRequest } from '../write-request.js';

export const target: TargetOptions = { ...plainTarget, promptCaching: false };

export const context = plainContext;

export const source = { ...plainSource, model: 'up' };

export const plain = plainRequest;

/** The token of a signature, or of encrypted thinking, that this protocol's upstream made. */
export function token(value: string, redacted = false): string {
  return tagSignature({ protocol: 'messages', model: 'up', value, redacted });
}

export function decode(body: JsonObject, stream = false): ConversationRequest {
  const whole = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...body };
  const schema = whole.max_tokens === undefined ? countTokensRequest : messagesRequest;
  if (!schema.check(whole)) throw schema.explain(whole);
  return messagesCodec.decodeRequest(whole, stream, context.sealer);
}

/** The upstream's body for `plain` with some of it changed. */
export function encode(
  changes: Partial<ConversationRequest> = {},
  options: Partial<TargetOptions> = {},
): JsonObject {
  return JSON.parse(encodeText({ ...plain, ...changes }, options)) as JsonObject;
}

export function encodeText(request: ConversationRequest, options: Partial<TargetOptions> = {}): string {
  return writeRequest(messagesCodec, request, { ...target, ...options });
}

/** The neutral events of a stream that is given as the data of its events, read to its end. */
export function decodeStream(...events: readonly (object | string)[]): StreamEvent[] {
  const decoder = messagesCodec.createDecoder(source);
  const out: StreamEvent[] = [];
  for (const event of events) {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    decoder.decode(null, data, out);
  }
  decoder.finish(out);
  return out;
}

/** The text of a stream that is given as neutral events. */
export function encodeStream(events: readonly StreamEvent[], changes: Partial<AnswerContext> = {}): string {
  const encoder = messagesCodec.createEncoder({ ...context, ...changes });
  return events.map((event) => encoder.encode(event)).join('');
}

/** The server-sent events of objects that say their type. */
export function sse(...events: readonly { readonly type: string }[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}
