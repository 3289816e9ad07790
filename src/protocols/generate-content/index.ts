import type { TextCodec } from '../../conversation/codec.js';
import { tokenMarks } from '../../conversation/signature.js';
import { type AnswerCharges, growingMetering } from '../../conversation/stream-rules.js';
import { textsIn } from '../../conversation/web-search.js';
import { isObject, type JsonObject, parseObject } from '../../wire/json.js';
import { textStart } from '../../wire/json-skip.js';
import { outputMembers } from '../../wire/routed-members.js';
import { eventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { generateContentEffects } from '../effects.js';
import { plainEndpoint, plainTranslation, type TextEndpoint, tokenCountOf } from '../endpoint.js';
import { modelPath } from '../model-path.js';
import { googleSchemas } from '../schema-rules.js';
import { candidatesOf, decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeUsage, lastUsage } from './answer/usage.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { countTokensRequest, generateContentRequest } from './request/schema.js';
import { restore } from './restore.js';
import { memberOf } from './spelling.js';
import { BlockDecoder } from './stream/decoder.js';
import { BlockEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, marks, marksEnd } from './stream/rules.js';

/** A quoted key cannot occur inside a string, which would escape its quotes. */
const queriesKey = Buffer.from('"webSearchQueries"');
/** Most queries of one answer that are counted separately. */
const mostQueries = 1000;
const OPEN_BRACE = 0x7b;

/**
 * Records the queries of an answer, which its usage does not contain
 * (https://ai.google.dev/gemini-api/docs/google-search#pricing); see `StreamRules.noteCharges`.
 */
function noteCharges(run: Buffer, charges: AnswerCharges): void {
  let at = run.indexOf(queriesKey);
  if (at === -1) return;
  if (run[textStart(run)] === OPEN_BRACE) {
    addQueries(run.toString('utf8'), charges);
    return;
  }
  while (at !== -1) {
    const start = lastEventEnd(run, 0, at);
    const end = eventEnd(run, at);
    addQueries(parseEvent(run.toString('utf8', start, end)).data ?? '', charges);
    at = run.indexOf(queriesKey, end);
  }
}

function addQueries(text: string, { queries }: AnswerCharges): void {
  for (const { groundingMetadata: metadata } of candidatesOf(parseObject(text) ?? {})) {
    if (!isObject(metadata)) continue;
    for (const query of textsIn(metadata.webSearchQueries))
      if (queries.size < mostQueries) queries.add(query);
  }
}

/** Translates between the generateContent protocol and the neutral types. */
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
    partBreakpoints: false,
    prefill: 'always',
    stop: { most: 5, blank: true },
    toolNames: { longest: 64, legal: /^[A-Za-z_][A-Za-z0-9_.:-]*$/ },
    outputRoot: 'any',
    jsonWord: null,
    ...googleSchemas,
    lacks: [
      'verbosity',
      'user',
      'parallelCalls',
      'strict',
      'detail',
      'fileName',
      'formatDescription',
      'serving',
    ],
    search: { asked: 'alone', says: [], choice: 'none', name: null },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf: (body) => decodeUsage(body.usageMetadata),
  encodeAnswer,
  createDecoder: (source) => new BlockDecoder(source),
  createEncoder: (context) => new BlockEncoder(context),
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
  translation: {
    ...plainTranslation,
    codec: generateContentCodec,
    schema: generateContentRequest,
    mediaByUrl: false,
    carriedMarks: tokenMarks,
    restore,
  },
  hasEffects: generateContentEffects,
};

/** `POST /v1beta/models/{model}:countTokens` */
export const countTokens = tokenCountOf(generateContent, {
  upstreamPath: (model) => `${modelPath(model)}:countTokens`,
  schema: countTokensRequest,
  answer: (tokens) => `{"totalTokens":${tokens}}`,
  conversation: null,
  unwrap: wrappedRequest,
});

/** Returns the request of a body that counts tokens and has a whole request in one member. */
function wrappedRequest(body: JsonObject): JsonObject {
  const wrapped = memberOf(body, 'generateContentRequest');
  return isObject(wrapped) ? wrapped : body;
}
