import { conversationMetering } from '../../conversation/stream-rules.js';
import { chatOnce } from '../once.js';
import { endsWithMark } from '../openai-shared/choice-stream.js';
import { bodyOutputLimit, type Endpoint } from '../protocol.js';
import { lastUsage } from './answer/usage.js';
import { chatCodec } from './codec.js';
import { findUsageEvent, judgeEnd, judgeStart, marks } from './stream/rules.js';

/** `POST /v1/chat/completions` */
export const chat: Endpoint = {
  protocol: 'chat',
  upstreamPath: () => '/chat/completions',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: true,
  outputLimit: bodyOutputLimit,
  mayStream: false,
  answersJson: true,
  marks,
  judgeStart,
  usageAtStart: null,
  marksEnd: endsWithMark,
  judgeEnd,
  findUsageEvent,
  usageOf: lastUsage,
  metering: conversationMetering,
  translation: { codec: chatCodec, mediaByUrl: true, answerHere: null, unwrap: null, restore: null },
  amender: null,
  once: chatOnce,
};
