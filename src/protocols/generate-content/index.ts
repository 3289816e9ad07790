import { estimateTokens } from '../../conversation/estimate.js';
import { isObject, type JsonObject } from '../../conversation/json.js';
import { growingMetering, reportedMetering, wholeAnswers } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { generateContentCodec } from './codec.js';
import { judgeEnd, judgeStart, marksEnd } from './manner.js';
import { restore } from './restore.js';
import { memberOf } from './spelling.js';
import { lastUsage } from './usage.js';

/** `POST /v1beta/models/{model}:generateContent`, and `:streamGenerateContent` for streams. */
export const generateContent: Endpoint = {
  protocol: 'generateContent',
  upstreamPath: (model, stream) =>
    modelPath(model) + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
  modelInBody: false,
  usageOnRequest: false,
  outputLimit: {
    within: 'generationConfig',
    fields: ['maxOutputTokens'],
    choices: 'candidateCount',
  },
  mayStream: false,
  judgeStart,
  usageAtStart: null,
  marksEnd,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: {
    codec: generateContentCodec,
    answerHere: null,
    unwrap: null,
    restore,
  },
  amender: null,
};

/** `POST /v1beta/models/{model}:countTokens`. */
export const countTokens: Endpoint = {
  ...wholeAnswers(() => null, reportedMetering),
  protocol: 'generateContent',
  upstreamPath: (model) => `${modelPath(model)}:countTokens`,
  modelInBody: false,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  translation: {
    codec: generateContentCodec,
    answerHere: (request) => `{"totalTokens":${estimateTokens(request)}}`,
    unwrap: wrappedRequest,
    restore,
  },
  amender: null,
};

/** Path of a model, whose name may begin with the collection that it is in. */
function modelPath(model: string): string {
  const path = model.split('/').map(encodeURIComponent).join('/');
  return model.startsWith('models/') || model.startsWith('tunedModels/') ? `/${path}` : `/models/${path}`;
}

/** What a question is about that asks with a whole request in one member. */
function wrappedRequest(body: JsonObject): JsonObject {
  const wrapped = memberOf(body, 'generateContentRequest');
  return isObject(wrapped) ? wrapped : body;
}
