import { reportedMetering, wholeAnswers } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { moderationUsage } from './usage.js';

/** `POST /v1/moderations` */
export const moderations: Endpoint = {
  ...wholeAnswers(moderationUsage, reportedMetering),
  protocol: 'moderations',
  upstreamPath: () => '/moderations',
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  translation: null,
  amender: null,
};
