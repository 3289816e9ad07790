import { type ChoiceStreamParts, createChoiceStream } from '../../openai-shared/choice-stream.js';

/** What distinguishes a stream of this protocol from others of its kind. */
export const streamParts: ChoiceStreamParts = { protocol: 'chat', chunkObject: 'chat.completion.chunk' };

/** How a stream of this protocol is judged as it passes; see `StreamRules`. */
export const { marks, isHarmless, judgeStart, judgeContent, marksEnd, judgeEnd, hideUsage } =
  createChoiceStream(streamParts);
