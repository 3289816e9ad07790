import type { TextCodec } from '../../conversation/codec.js';
import { estimateTokens } from '../../conversation/estimate.js';
import { growingMetering, reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { queryParameter } from '../../wire/query.js';
import { bodyOutputLimit, type Endpoint } from '../endpoint.js';
import { messagesOnce, never } from '../once.js';
import { anthropicSchemas } from '../schema-rules.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { firstUsage, lastUsage } from './answer/usage.js';
import { countTokensConversation, messagesConversation } from './conversation.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { countTokensRequest, messagesRequest } from './request/schema.js';
import { carriedMarks, mayLackSignature, restore } from './restore.js';
import { searchName } from './search-tool.js';
import { createDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, marks } from './stream/rules.js';

/** The messages protocol to and from the neutral types. */
export const messagesCodec: TextCodec = {
  rules: {
    protocol: 'messages',
    customTools: 'never',
    topK: 'always',
    reasoning: 'signed',
    callArguments: 'object',
    uniqueCalls: 'conversation',
    firstTurn: 'user',
    cacheBreakpoints: 4,
    prefill: 'option',
    stop: { most: Number.POSITIVE_INFINITY, blank: false },
    toolNames: { longest: 128, legal: /^[A-Za-z0-9_-]+$/ },
    outputRoot: 'object',
    ...anthropicSchemas,
    lacks: ['seed', 'presencePenalty', 'frequencyPenalty', 'verbosity', 'detail', 'serving'],
    signatures: 'messages',
    signsWords: true,
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
  encodeAnswer,
  createDecoder,
  createEncoder,
};

/** `POST /v1/messages` */
export const messages: Endpoint = {
  protocol: 'messages',
  upstreamPath: () => '/messages',
  upstreamQuery: queryOfBeta,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: bodyOutputLimit,
  streamsUnasked: false,
  answersJson: true,
  mayLack: false,
  marks,
  judgeStart,
  usageAtStart: firstUsage,
  marksEnd: null,
  lastNumber: null,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: {
    protocol: 'messages',
    codec: messagesCodec,
    schema: messagesRequest,
    mediaByUrl: true,
    answerHere: null,
    unwrap: null,
    carriedMarks,
    mayLackSignature,
    restore,
  },
  otherForm: null,
  amender: null,
  conversation: messagesConversation,
  once: messagesOnce,
};

/** `POST /v1/messages/count_tokens`. Other protocols have no such question: for their models the answer is an estimate. */
export const countTokens: Endpoint = {
  ...wholeAnswers(() => null, reportedMetering),
  protocol: 'messages',
  upstreamPath: () => '/messages/count_tokens',
  upstreamQuery: queryOfBeta,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  streamsUnasked: false,
  answersJson: true,
  mayLack: true,
  translation: {
    protocol: 'messages',
    codec: messagesCodec,
    schema: countTokensRequest,
    mediaByUrl: true,
    answerHere: (request) => `{"input_tokens":${estimateTokens(request)}}`,
    unwrap: null,
    carriedMarks,
    mayLackSignature,
    restore,
  },
  otherForm: null,
  amender: null,
  conversation: countTokensConversation,
  once: never,
};

/** The SDK's beta client says so in the query too. */
function queryOfBeta(query: string): string {
  return queryParameter(query, 'beta') === 'true' ? '?beta=true' : '';
}
