import { endsWithMark } from '../../conversation/choice-stream.js';
import { conversationMetering } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { chatCodec } from './codec.js';
import { findUsageEvent, judgeEnd, judgeStart } from './manner.js';
import { lastUsage } from './usage.js';

/** `POST /v1/chat/completions` */
export const chat: Endpoint = {
  protocol: 'chat',
  upstreamPath: () => '/chat/completions',
  modelInBody: true,
  usageOnRequest: true,
  outputLimit: { within: null, fields: ['max_completion_tokens', 'max_tokens'], choices: 'n' },
  mayStream: false,
  judgeStart,
  usageAtStart: null,
  marksEnd: endsWithMark,
  judgeEnd,
  findUsageEvent,
  usageOf: lastUsage,
  metering: conversationMetering,
  translation: { codec: chatCodec, answerHere: null, unwrap: null, restore: null },
  amender: null,
};
