import { endsWithMark } from '../../conversation/choice-stream.js';
import { conversationMetering } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { findUsageEvent, judgeEnd, judgeStart } from './manner.js';
import { lastUsage } from './usage.js';

/** `POST /v1/completions` */
export const completions: Endpoint = {
  protocol: 'completions',
  upstreamPath: () => '/completions',
  modelInBody: true,
  usageOnRequest: true,
  outputLimit: { within: null, fields: ['max_tokens'], choices: 'n' },
  mayStream: false,
  judgeStart,
  usageAtStart: null,
  marksEnd: endsWithMark,
  judgeEnd,
  findUsageEvent,
  usageOf: lastUsage,
  metering: conversationMetering,
  translation: null,
  amender: null,
};
