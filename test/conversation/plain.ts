import type { AnswerContext, AnswerSource, TargetOptions } from '../../src/conversation/codec.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../src/conversation/request.js';
import { createSealer } from '../../src/wire/seal.js';

/** A request of a chat client that asks for nothing but an answer to `hi`. */
export const plainRequest: ConversationRequest = {
  from: 'chat',
  stream: false,
  leftOut: [],
  system: [],
  systemCache: undefined,
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
  tools: [],
  hostedTools: [],
  toolChoice: null,
  parallelCalls: null,
  format: null,
  reasoning: null,
  maxTokens: null,
  temperature: null,
  topP: null,
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
  includeUsage: false,
  echo: null,
  compaction: null,
};

/** A target without settings of its own. */
export const plainTarget: TargetOptions = {
  model: 'up',
  maxTokens: 4096,
  maxTokensField: 'max_completion_tokens',
  streamUsage: true,
  thinking: 'budget',
  jsonSchema: true,
  customTools: false,
  topK: false,
  promptCaching: true,
  cacheBreakpoints: false,
  threads: true,
  unsignedThinking: false,
  systemMessages: false,
  preservedThinking: false,
  forcedCalls: true,
  encryptedReasoning: false,
  upstream: '',
  search: null,
  hostedTools: 'reject',
};

/** A call whose client sees all of an answer. */
export const plainContext: AnswerContext = {
  id: '1',
  requestId: 'req_1',
  created: 1,
  model: 'm',
  includeUsage: true,
  showReasoning: true,
  functionForm: false,
  tools: [],
  userAgent: '',
  searches: false,
  lost: new LeftOut(),
  echo: null,
  compaction: null,
  sealer: createSealer('a secret of the tests'),
  framing: 'sse',
};

/** An answer of a model that was not told to search. */
export const plainSource: AnswerSource = {
  model: 'm',
  searches: false,
  upstream: '',
  unsignedThinking: false,
  lost: new LeftOut(),
};
