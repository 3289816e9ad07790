import { createChoiceStream } from '../../openai-shared/choice-stream.js';

/** How a stream of this protocol is judged as it passes; see `StreamRules`. */
export const { marks, judgeStart, judgeEnd, findUsageEvent } = createChoiceStream({
  protocol: 'chat',
  chunkObject: 'chat.completion.chunk',
});
