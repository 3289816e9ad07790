import type { TextCodec } from '../../conversation/codec.js';
import { growingMetering } from '../../conversation/stream-rules.js';
import { needleOf } from '../../wire/json-skip.js';
import { queryParameter } from '../../wire/query.js';
import { messagesEffects } from '../effects.js';
import {
  bodyOutputLimit,
  plainEndpoint,
  plainTranslation,
  type TextEndpoint,
  tokenCountOf,
} from '../endpoint.js';
import { anthropicSchemas } from '../schema-rules.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeUsage, firstUsage, lastUsage } from './answer/usage.js';
import { countTokensConversation, messagesConversation } from './conversation.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { countTokensRequest, messagesRequest } from './request/schema.js';
import { carriedMarks, mayLackSignature, restore } from './restore.js';
import { searchName } from './search-tool.js';
import { MessagesDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, marks } from './stream/rules.js';

/** Translates between the messages protocol and the neutral types. */
export const messagesCodec: TextCodec = {
  rules: {
    protocol: 'messages',
    customTools: 'never',
    topK: 'always',
    reasoning: 'signed',
    callArguments: 'object',
    uniqueCalls: 'conversation',
    firstTurn: 'user',
    instructionsAlone: false,
    cacheBreakpoints: 4,
    partBreakpoints: false,
    prefill: 'option',
    stop: { most: Number.POSITIVE_INFINITY, blank: false },
    toolNames: { longest: 128, legal: /^[A-Za-z0-9_-]+$/ },
    outputRoot: 'object',
    jsonWord: null,
    ...anthropicSchemas,
    lacks: [
      'seed',
      'presencePenalty',
      'frequencyPenalty',
      'verbosity',
      'detail',
      'formatDescription',
      'serving',
    ],
    search: {
      asked: 'always',
      says: ['allowedDomains', 'blockedDomains', 'location', 'maxUses'],
      choice: 'any',
      name: searchName,
    },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf: (body) => decodeUsage(body.usage),
  encodeAnswer,
  createDecoder: (source) => new MessagesDecoder(source),
  createEncoder,
};

/** `POST /v1/messages` */
export const messages: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'messages',
  upstreamPath: () => '/messages',
  // The SDK's beta client adds this to the query, too.
  upstreamQuery: (query) => (queryParameter(query, 'beta') === 'true' ? '?beta=true' : ''),
  outputLimit: bodyOutputLimit,
  marks,
  judgeStart,
  usageAtStart: firstUsage,
  judgeEnd,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: {
    ...plainTranslation,
    codec: messagesCodec,
    schema: messagesRequest,
    carriedMarks,
    mayLackSignature,
    thinkingOff: needleOf('"disabled"'),
    restore,
  },
  conversation: messagesConversation,
  hasEffects: messagesEffects,
};

/** `POST /v1/messages/count_tokens` */
export const countTokens = tokenCountOf(messages, {
  upstreamPath: () => '/messages/count_tokens',
  schema: countTokensRequest,
  answer: (tokens) => `{"input_tokens":${tokens}}`,
  conversation: countTokensConversation,
  unwrap: null,
});
