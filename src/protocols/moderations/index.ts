import { reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { never } from '../once.js';
import type { Endpoint } from '../protocol.js';
import { moderationUsage } from './usage.js';

/** `POST /v1/moderations` */
export const moderations: Endpoint = {
  ...wholeAnswers(moderationUsage, reportedMetering),
  protocol: 'moderations',
  upstreamPath: () => '/moderations',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  translation: null,
  amender: null,
  once: never,
};
