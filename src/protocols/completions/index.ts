import { growingMetering } from '../../conversation/stream-rules.js';
import { bodyOutputLimit, type Endpoint } from '../endpoint.js';
import { never } from '../once.js';
import { createChoiceStream, endsWithMark, lastUsage } from '../openai-shared/choice-stream.js';

/** How a stream of this protocol is judged as it passes; see `StreamRules`. */
const { marks, judgeStart, judgeEnd, findUsageEvent } = createChoiceStream({
  protocol: 'completions',
  chunkObject: 'text_completion',
});

/** `POST /v1/completions` */
export const completions: Endpoint = {
  protocol: 'completions',
  upstreamPath: () => '/completions',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: true,
  outputLimit: { ...bodyOutputLimit, choices: ['n', 'best_of'], each: 'prompt' },
  streamsUnasked: false,
  answersJson: true,
  mayLack: false,
  marks,
  judgeStart,
  usageAtStart: null,
  marksEnd: endsWithMark,
  lastNumber: null,
  judgeEnd,
  findUsageEvent,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: null,
  otherForm: null,
  amender: null,
  conversation: null,
  once: never,
};
