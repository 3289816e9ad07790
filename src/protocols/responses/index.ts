import type { TextCodec } from '../../conversation/codec.js';
import { conversationMetering, wholeAnswers } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { encodeRequest } from './encode-request.js';
import { judgeEnd, judgeStart, marksEnd } from './manner.js';
import { decodeReply, encodeReply } from './reply.js';
import { decodeCompactRequest, decodeRequest } from './request.js';
import { restore } from './restore.js';
import { createDecoder } from './stream-decoder.js';
import { createEncoder } from './stream-encoder.js';
import { lastUsage } from './usage.js';

/** The responses protocol's translation. */
export const responsesCodec: TextCodec = {
  decodeRequest,
  encodeRequest,
  decodeReply,
  encodeReply,
  createDecoder,
  createEncoder,
};

/** The same for a compaction on its own, whose body is the question for one. */
const compactCodec: TextCodec = { ...responsesCodec, decodeRequest: decodeCompactRequest };

/** `POST /v1/responses` */
export const responses: Endpoint = {
  protocol: 'responses',
  upstreamPath: () => '/responses',
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: { within: null, fields: ['max_output_tokens'], choices: 'n' },
  mayStream: false,
  judgeStart,
  usageAtStart: null,
  marksEnd,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: conversationMetering,
  translation: { codec: responsesCodec, answerHere: null, unwrap: null, restore },
  amender: null,
};

/** `POST /v1/responses/compact` */
export const compactResponses: Endpoint = {
  ...wholeAnswers(lastUsage, conversationMetering),
  protocol: 'responses',
  upstreamPath: () => '/responses/compact',
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  translation: { codec: compactCodec, answerHere: null, unwrap: null, restore },
  amender: null,
};
