import { test } from 'tap';
import type { ConversationRequest } from '../../src/conversation/request.js';
import { namesRemovedByRules } from '../../src/conversation/setting-names.js';
import { plain } from '../protocols/messages/samples.js';

test('what rules leave out of a translated body is told as its client calls it, where the client has said it', async (t) => {
  const told = (path: string, said: Partial<ConversationRequest>) =>
    namesRemovedByRules({ ...plain, from: 'generateContent', ...said }, 'chat', path);
  t.strictSame(told('stop', { stop: ['END'] }), ['generationConfig.stopSequences']);
  t.strictSame(told('n', { candidates: 2 }), ['generationConfig.candidateCount']);
  t.strictSame(told('seed', { seed: 0 }), ['generationConfig.seed']);
  const tool = { name: 'f', description: null, parameters: {}, strict: null } as const;
  t.strictSame(told('tools', { tools: [tool] }), ['tools']);
  for (const path of ['stop', 'n', 'seed', 'tools', 'messages', 'unknown'])
    t.strictSame(told(path, {}), [], path);
});
