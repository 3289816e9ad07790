import type { TextCodec } from '../../conversation/codec.js';
import { conversationMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { noEffects, responsesEffects } from '../effects.js';
import {
  bodyOutputLimit,
  type Endpoint,
  plainEndpoint,
  plainTranslation,
  type TextEndpoint,
  type Translation,
  tokenCountOf,
} from '../endpoint.js';
import { openaiSchemas } from '../schema-rules.js';
import { decodeAnswer, usageOf } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { usageOfAnswer } from './answer/usage.js';
import { noteBytes, noteCharges } from './charges.js';
import { compactConversation, responsesConversation } from './conversation.js';
import { decodeCompactRequest, decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { compactRequest, inputTokensRequest, responsesRequest } from './request/schema.js';
import { carriedMarks, restore } from './restore.js';
import { ResponseDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, lastNumber, marks, marksEnd } from './stream/rules.js';

/** Translates between the responses protocol and the neutral types. */
export const responsesCodec: TextCodec = {
  rules: {
    protocol: 'responses',
    customTools: 'always',
    topK: 'never',
    reasoning: 'encrypted',
    callArguments: 'text',
    uniqueCalls: 'conversation',
    firstTurn: 'any',
    instructionsAlone: false,
    cacheBreakpoints: 0,
    partBreakpoints: true,
    prefill: 'never',
    stop: { most: 0, blank: true },
    toolNames: { longest: 64, legal: /^[A-Za-z0-9_-]+$/ },
    outputRoot: 'object',
    jsonWord: 'turns',
    ...openaiSchemas,
    lacks: ['seed', 'presencePenalty', 'frequencyPenalty'],
    search: {
      asked: 'always',
      says: ['allowedDomains', 'location', 'maxUses', 'contextSize', 'live'],
      choice: 'any',
      name: null,
    },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf,
  encodeAnswer,
  createDecoder: (source) => new ResponseDecoder(source),
  createEncoder,
};

const translation: Translation = {
  ...plainTranslation,
  codec: responsesCodec,
  schema: responsesRequest,
  carriedMarks,
  restore,
};

/** `POST /v1/responses` */
export const responses: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'responses',
  upstreamPath: () => '/responses',
  outputLimit: bodyOutputLimit,
  marks,
  judgeStart,
  marksEnd,
  lastNumber,
  judgeEnd,
  usageOf: usageOfAnswer,
  wholeBytes: noteBytes,
  noteCharges,
  metering: conversationMetering,
  translation,
  conversation: responsesConversation,
  hasEffects: responsesEffects,
  answersLater: true,
};

/** `POST /v1/responses/compact`. Its body requests a compaction. */
export const compactResponses: Endpoint = {
  ...plainEndpoint,
  ...wholeAnswers(usageOfAnswer, conversationMetering, judgeStart),
  protocol: 'responses',
  upstreamPath: () => '/responses/compact',
  mayLack: true,
  translation: {
    ...translation,
    codec: { ...responsesCodec, decodeRequest: decodeCompactRequest },
    schema: compactRequest,
  },
  conversation: compactConversation,
  hasEffects: noEffects,
};

/**
 * `POST /v1/responses/input_tokens`
 * (https://platform.openai.com/docs/api-reference/responses/input-tokens).
 */
export const countInputTokens = tokenCountOf(responses, {
  upstreamPath: () => '/responses/input_tokens',
  schema: inputTokensRequest,
  answer: (tokens) => JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }),
  conversation: compactConversation,
  unwrap: null,
});
