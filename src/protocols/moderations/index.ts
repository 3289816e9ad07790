import { reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { noEffects } from '../effects.js';
import { type Endpoint, plainEndpoint } from '../endpoint.js';
import { judgeError } from '../openai-shared/judge-error.js';
import { createInputUsageReader } from '../openai-shared/usage.js';

/** Finds the `usage` of an answer, which OpenAI's own does not have; see `UsageReader.lastUsage`. */
const { lastUsage } = createInputUsageReader();

/** `POST /v1/moderations` */
export const moderations: Endpoint = {
  ...plainEndpoint,
  ...wholeAnswers(lastUsage, reportedMetering, judgeError, ['"results"']),
  protocol: 'moderations',
  upstreamPath: () => '/moderations',
  hasEffects: noEffects,
};
