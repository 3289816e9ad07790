import { estimateTokens } from '../../conversation/estimate.js';
import { growingMetering, reportedMetering, wholeAnswers } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { codec } from './codec.js';
import { judgeEnd, judgeStart } from './manner.js';
import { restore } from './restore.js';
import { firstUsage, lastUsage } from './usage.js';

/** `POST /v1/messages` */
export const messages: Endpoint = {
  protocol: 'messages',
  upstreamPath: () => '/messages',
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: { within: null, fields: ['max_tokens'], choices: 'n' },
  mayStream: false,
  judgeStart,
  usageAtStart: firstUsage,
  marksEnd: null,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: { codec, answerHere: null, unwrap: null, restore },
  amender: null,
};

/** `POST /v1/messages/count_tokens`. Other protocols have no such question: for their models the answer is an estimate. */
export const countTokens: Endpoint = {
  ...wholeAnswers(() => null, reportedMetering),
  protocol: 'messages',
  upstreamPath: () => '/messages/count_tokens',
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  translation: {
    codec,
    answerHere: (request) => `{"input_tokens":${estimateTokens(request)}}`,
    unwrap: null,
    restore,
  },
  amender: null,
};
