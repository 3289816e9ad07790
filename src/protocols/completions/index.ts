import { growingMetering } from '../../conversation/stream-rules.js';
import { bodyOutputLimit, type Endpoint, plainEndpoint } from '../endpoint.js';
import { never } from '../once.js';
import { createChoiceStream, endsWithMark, lastUsage } from '../openai-shared/choice-stream.js';

/** How a stream of this protocol is judged as it passes; see `StreamRules`. */
const { marks, judgeStart, judgeEnd, hideUsage } = createChoiceStream({
  protocol: 'completions',
  chunkObject: 'text_completion',
});

/** `POST /v1/completions` */
export const completions: Endpoint = {
  ...plainEndpoint,
  protocol: 'completions',
  upstreamPath: () => '/completions',
  usageOnRequest: true,
  outputLimit: { ...bodyOutputLimit, choices: ['n', 'best_of'], each: 'prompt' },
  marks,
  judgeStart,
  marksEnd: endsWithMark,
  judgeEnd,
  hideUsage,
  usageOf: lastUsage,
  metering: growingMetering,
  once: never,
};
