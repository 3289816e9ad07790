import { conversationMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { never, responsesOnce } from '../once.js';
import { bodyOutputLimit, type Endpoint } from '../protocol.js';
import { lastUsage } from './answer/usage.js';
import { compactCodec, responsesCodec } from './codec.js';
import { restore } from './restore.js';
import { judgeEnd, judgeStart, marks, marksEnd } from './stream/rules.js';

/** `POST /v1/responses` */
export const responses: Endpoint = {
  protocol: 'responses',
  upstreamPath: () => '/responses',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: bodyOutputLimit,
  mayStream: false,
  answersJson: true,
  marks,
  judgeStart,
  usageAtStart: null,
  marksEnd,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: conversationMetering,
  translation: { codec: responsesCodec, mediaByUrl: true, answerHere: null, unwrap: null, restore },
  amender: null,
  once: responsesOnce,
};

/** `POST /v1/responses/compact` */
export const compactResponses: Endpoint = {
  ...wholeAnswers(lastUsage, conversationMetering),
  protocol: 'responses',
  upstreamPath: () => '/responses/compact',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  translation: { codec: compactCodec, mediaByUrl: true, answerHere: null, unwrap: null, restore },
  amender: null,
  once: never,
};
