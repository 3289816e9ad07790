import type { TextCodec } from '../../conversation/codec.js';
import { tokenMarks } from '../../conversation/signature.js';
import { growingMetering, reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { estimateTokens } from '../../conversation/token-count.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { outputMembers } from '../../wire/routed-members.js';
import {
  type Endpoint,
  plainEndpoint,
  plainTranslation,
  type TextEndpoint,
  type Translation,
} from '../endpoint.js';
import { modelPath } from '../model-path.js';
import { generateContentOnce, never } from '../once.js';
import { googleSchemas } from '../schema-rules.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { lastUsage } from './answer/usage.js';
import { noteCharges } from './charges.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { countTokensRequest, generateContentRequest } from './request/schema.js';
import { restore } from './restore.js';
import { memberOf } from './spelling.js';
import { BlockDecoder } from './stream/decoder.js';
import { BlockEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, marks, marksEnd } from './stream/rules.js';

/** The protocol's translation to and from the neutral types. */
export const generateContentCodec: TextCodec = {
  rules: {
    protocol: 'generateContent',
    customTools: 'never',
    topK: 'always',
    reasoning: 'signed',
    callArguments: 'object',
    uniqueCalls: 'answer',
    firstTurn: 'noCall',
    instructionsAlone: false,
    cacheBreakpoints: 0,
    prefill: 'always',
    stop: { most: 5, blank: true },
    toolNames: { longest: 64, legal: /^[A-Za-z_][A-Za-z0-9_.:-]*$/ },
    outputRoot: 'any',
    ...googleSchemas,
    lacks: ['verbosity', 'user', 'parallelCalls', 'strict', 'detail', 'serving'],
    signsWords: false,
    search: { asked: 'alone', says: [], choice: 'none', name: null },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  encodeAnswer,
  createDecoder: (source) => new BlockDecoder(source),
  createEncoder: (context) => new BlockEncoder(context),
};

const translation: Translation = {
  ...plainTranslation,
  codec: generateContentCodec,
  schema: generateContentRequest,
  mediaByUrl: false,
  carriedMarks: tokenMarks,
  restore,
};

/** `POST /v1beta/models/{model}:generateContent`, and `:streamGenerateContent` for streams. */
export const generateContent: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'generateContent',
  upstreamPath: (model, stream) =>
    modelPath(model) + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
  modelInBody: false,
  outputLimit: {
    within: outputMembers.configs,
    fields: ['maxOutputTokens', 'max_output_tokens'],
    choices: ['candidateCount', 'candidate_count'],
    each: null,
  },
  marks,
  judgeStart,
  marksEnd,
  judgeEnd,
  usageOf: lastUsage,
  noteCharges,
  metering: growingMetering,
  translation,
  once: generateContentOnce,
};

/** `POST /v1beta/models/{model}:countTokens`. */
export const countTokens: Endpoint = {
  ...plainEndpoint,
  ...wholeAnswers(() => null, reportedMetering),
  protocol: 'generateContent',
  upstreamPath: (model) => `${modelPath(model)}:countTokens`,
  modelInBody: false,
  mayLack: true,
  translation: {
    ...translation,
    schema: countTokensRequest,
    answerHere: (request) => `{"totalTokens":${estimateTokens(request)}}`,
    unwrap: wrappedRequest,
  },
  once: never,
};

/** What a question is about that asks with a whole request in one member. */
function wrappedRequest(body: JsonObject): JsonObject {
  const wrapped = memberOf(body, 'generateContentRequest');
  return isObject(wrapped) ? wrapped : body;
}
