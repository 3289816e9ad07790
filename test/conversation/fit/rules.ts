import type { RequestRules, TargetOptions } from '../../../src/conversation/codec.js';
import type { Fit, Fitted } from '../../../src/conversation/fit/fitted.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { target } from '../../protocols/messages/samples.js';

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
  partBreakpoints: false,
  prefill: 'always',
  stop: { most: 100, blank: true },
  outputRoot: 'any',
  jsonWord: null,
  answerSchema: null,
  toolRoot: [],
  strictTools: null,
  toolNames: { longest: 1000, legal: /^/ },
  lacks: [],
  search: { asked: 'always', says: [], choice: 'any', name: null },
};

/** A request and its answer's restorer as one change leaves them, whether or not it changes anything. */
export function fittedBy(
  fit: Fit,
  request: ConversationRequest,
  rules: RequestRules,
  options: TargetOptions = target,
  leftOut = new LeftOut(),
): Fitted {
  return fit(request, { rules, options, leftOut }) ?? { request, restorer: null };
}
