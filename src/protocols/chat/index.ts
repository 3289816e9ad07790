import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import type { TextCodec } from '../../conversation/codec.js';
import { tokenIn, tokenMarks } from '../../conversation/signature.js';
import { growingMetering } from '../../conversation/stream-rules.js';
import { changedObjects, type JsonObject } from '../../wire/json.js';
import { chatEffects } from '../effects.js';
import { bodyOutputLimit, plainEndpoint, plainTranslation, type TextEndpoint } from '../endpoint.js';
import { openaiSchemas } from '../schema-rules.js';
import { decodeAnswer, signatureBeside } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeUsage, lastUsage } from './answer/usage.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { chatRequest } from './request/schema.js';
import { ChatDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import {
  hideUsage,
  isHarmless,
  judgeContent,
  judgeEnd,
  judgeStart,
  marks,
  marksEnd,
} from './stream/rules.js';

/** Marks of tokens in ids or beside calls; see `Translation.carriedMarks`. */
const carriedMarks = [carryingMark, ...tokenMarks];

/** Translates between the chat protocol and the neutral types. */
export const chatCodec: TextCodec = {
  rules: {
    protocol: 'chat',
    customTools: 'option',
    topK: 'option',
    reasoning: 'unsigned',
    callArguments: 'text',
    uniqueCalls: 'answer',
    firstTurn: 'any',
    instructionsAlone: true,
    cacheBreakpoints: 0,
    partBreakpoints: true,
    prefill: 'always',
    stop: { most: 4, blank: true },
    toolNames: { longest: 64, legal: /^[A-Za-z0-9_-]+$/ },
    outputRoot: 'object',
    jsonWord: 'anywhere',
    ...openaiSchemas,
    lacks: [],
    search: { asked: 'never', says: ['location', 'contextSize'], choice: 'implied', name: null },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf: (body) => decodeUsage(body),
  encodeAnswer,
  createDecoder: (source) => new ChatDecoder(source),
  createEncoder,
};

/** `POST /v1/chat/completions` */
export const chat: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'chat',
  upstreamPath: () => '/chat/completions',
  usageOnRequest: true,
  outputLimit: bodyOutputLimit,
  marks,
  isHarmless,
  judgeStart,
  judgeContent,
  marksEnd,
  judgeEnd,
  hideUsage,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: {
    ...plainTranslation,
    codec: chatCodec,
    schema: chatRequest,
    carriedMarks,
    takesUnsigned: true,
    restore,
  },
  hasEffects: chatEffects,
};

/**
 * Prepares a body for an upstream of this protocol; see `Translation.restore`. Removes the signatures of other
 * upstreams from the ids of calls, since vendors limit the length of ids.
 */
function restore(body: JsonObject): JsonObject | null {
  const messages = changedObjects(body.messages, restoreMessage);
  return messages === null ? null : { ...body, messages };
}

function restoreMessage(message: JsonObject): JsonObject {
  const restored = withBareId(message, 'tool_call_id');
  const calls = changedObjects(message.tool_calls, restoreCall);
  return calls === null ? restored : { ...restored, tool_calls: calls };
}

function restoreCall(call: JsonObject): JsonObject {
  const restored = withBareId(call, 'id');
  const carried = signatureBeside(call);
  if (carried === null || tokenIn(carried) === null) return restored;
  const { extra_content: _, ...rest } = restored;
  return rest;
}
