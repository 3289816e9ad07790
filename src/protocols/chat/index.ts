import type { TextProtocol } from '../protocol.js';
import { findUsageEvent, judgeEnd, judgeStart } from './stream.js';
import { lastUsage } from './usage.js';

export const chat: TextProtocol = {
  upstreamPath: '/chat/completions',
  usageOnRequest: true,
  judgeStart,
  judgeEnd,
  findUsageEvent,
  usageOf: lastUsage,
};
