import type { StreamEvent } from '../../../src/conversation/answer.js';
import type { AnswerContext, TargetOptions } from '../../../src/conversation/codec.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { GatewayError } from '../../../src/errors.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { chatRequest } from '../../../src/protocols/chat/request/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plainContext, plainRequest, plainSource, plainTarget } from '../../conversation/plain.js';
import { writeRequest } from '../write-request.js';

/** Chat has nothing to seal: a call of either is a mistake. */
const sealer = {
  seal(): string {
    throw new Error('sealed');
  },
  open(): string | null {
    throw new Error('opened');
  },
};

export const target: TargetOptions = { ...plainTarget, customTools: true };

export const context: AnswerContext = { ...plainContext, sealer };

/** A request that asks for nothing but an answer. */
export const plain: ConversationRequest = { ...plainRequest, from: 'messages' };

const question = { role: 'user', content: 'hi' };

export function decode(more: JsonObject, stream = false): ConversationRequest {
  const body = { model: 'm', messages: [question], ...more };
  if (!chatRequest.check(body)) throw chatRequest.explain(body);
  return chatCodec.decodeRequest(body, stream, sealer);
}

export function decodeMessages(...messages: readonly JsonObject[]): ConversationRequest {
  return decode({ messages });
}

export function encode(more: Partial<ConversationRequest>, options: Partial<TargetOptions> = {}): JsonObject {
  return JSON.parse(writeRequest(chatCodec, { ...plain, ...more }, { ...target, ...options })) as JsonObject;
}

/** What the call throws, as kind and parameter; a call that does not throw gives null. */
export function refusal(
  call: () => unknown,
): { readonly kind: string; readonly param: string | null } | null {
  try {
    call();
    return null;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { kind: error.kind, param: error.param };
  }
}

/** The neutral events of a stream whose events have these data, its end included. */
export function decodeStream(...data: readonly (string | JsonObject)[]): StreamEvent[] {
  const decoder = chatCodec.createDecoder({ ...plainSource, model: 'up' });
  const out: StreamEvent[] = [];
  for (const each of data) decoder.decode(null, typeof each === 'string' ? each : JSON.stringify(each), out);
  decoder.finish(out);
  return out;
}

/** A chunk of a stream with one choice. */
export function chunk(delta: JsonObject, more: JsonObject = {}): JsonObject {
  return { object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null, ...more }] };
}

/** Events without the members that say the same in every one of a plain stream. */
export function brief(events: readonly StreamEvent[]): string[] {
  return events.map((event) => {
    switch (event.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        return `${event.kind} ${event.text}`;
      case 'callStart':
        return `callStart ${event.call} ${event.id} ${event.name}${event.custom ? ' custom' : ''}`;
      case 'callArguments':
        return `callArguments ${event.call} ${event.text}`;
      case 'callEnd':
        return `callEnd ${event.call}`;
      case 'finish':
        return `finish ${event.reason}`;
      case 'error':
        return `error ${event.error.kind}`;
      case 'usage':
        return `usage ${event.usage.input} ${event.usage.output}`;
      default:
        return event.kind;
    }
  });
}
