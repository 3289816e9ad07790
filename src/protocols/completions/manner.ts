import { createChoiceStream } from '../../conversation/choice-stream.js';
import { objectAfterKey } from '../../wire/json-object.js';
import { firstEventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { lastUsage, usageAt } from './usage.js';

/** How a stream of this protocol is judged as it passes; see `StreamManner`. */
export const { judgeStart, judgeEnd, findUsageEvent } = createChoiceStream({
  protocol: 'completions',
  chunkObject: 'text_completion',
  reader: { firstEventEnd, lastEventEnd, parseEvent, objectAfterKey, lastUsage, usageAt },
});
