import { growingMetering } from '../../conversation/stream-rules.js';
import { noEffects } from '../effects.js';
import { bodyOutputLimit, type Endpoint, plainEndpoint } from '../endpoint.js';
import { createChoiceStream, lastUsage } from '../openai-shared/choice-stream.js';

/** `POST /v1/completions` */
export const completions: Endpoint = {
  ...plainEndpoint,
  ...createChoiceStream({ protocol: 'completions', chunkObject: 'text_completion' }),
  protocol: 'completions',
  upstreamPath: () => '/completions',
  usageOnRequest: true,
  outputLimit: { ...bodyOutputLimit, choices: ['n', 'best_of'], each: 'prompt' },
  usageOf: lastUsage,
  metering: growingMetering,
  hasEffects: noEffects,
};
