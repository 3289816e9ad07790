import type { RequestRules } from '../../../src/conversation/codec.js';

/** Of a protocol that can say everything. */
export const anything: RequestRules = {
  customTools: 'always',
  topK: 'always',
  reasoning: 'encrypted',
  callArguments: 'text',
  firstTurn: 'any',
  cacheBreakpoints: 0,
  prefill: 'always',
  stop: { most: 100, blank: true },
  outputRoot: 'any',
  closedSchemas: false,
  toolNames: { longest: 1000, legal: /^/ },
  lacks: [],
  signatures: 'responses',
  search: { asked: 'always', says: [], choice: 'any', name: null },
};
