import type { RequestRules } from '../../../src/conversation/codec.js';
import type { Fitted } from '../../../src/conversation/fit/fitted.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';

/** Of a protocol that can say everything. */
export const anything: RequestRules = {
  protocol: 'responses',
  customTools: 'always',
  topK: 'always',
  reasoning: 'encrypted',
  callArguments: 'text',
  uniqueCalls: 'conversation',
  firstTurn: 'any',
  instructionsAlone: true,
  cacheBreakpoints: 0,
  prefill: 'always',
  stop: { most: 100, blank: true },
  outputRoot: 'any',
  answerSchema: null,
  toolRoot: [],
  strictTools: null,
  toolNames: { longest: 1000, legal: /^/ },
  lacks: [],
  signatures: 'responses',
  signsWords: false,
  search: { asked: 'always', says: [], choice: 'any', name: null },
};

/** A request and its answer's restorer as one change leaves them, whether or not it changes anything. */
export function fittedBy<Rest extends unknown[]>(
  fit: (request: ConversationRequest, ...rest: Rest) => Fitted | null,
  request: ConversationRequest,
  ...rest: Rest
): Fitted {
  return fit(request, ...rest) ?? { request, restorer: null };
}
