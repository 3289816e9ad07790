import type { ConversationRequest } from '../../src/conversation/request.js';

/** What a request says of what its client says nothing of. */
export const plainRequest = {
  systemCache: undefined,
  parallelCalls: null,
  topK: null,
  stop: [],
  candidates: 1,
  seed: null,
  presencePenalty: null,
  frequencyPenalty: null,
  logitBias: null,
  logprobs: null,
  verbosity: null,
  user: null,
  includeUsage: true,
  echo: null,
  compaction: null,
} as const satisfies Partial<ConversationRequest>;
