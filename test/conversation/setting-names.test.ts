import { test } from 'tap';
import { LeftOut } from '../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../src/conversation/request.js';
import { leaveOut, namesRemovedByRules } from '../../src/conversation/setting-names.js';
import { chatCodec } from '../../src/protocols/chat/index.js';
import { plain } from '../protocols/messages/samples.js';
import { plainContext } from './plain.js';

test("a user's id that is left out has the name under which the client sent it", async (t) => {
  const told = (body: object) => {
    const request = chatCodec.decodeRequest(
      { model: 'm', messages: [], ...body },
      false,
      plainContext.sealer,
    );
    const leftOut = new LeftOut();
    leaveOut(request, 'user', leftOut);
    return [leftOut.names, namesRemovedByRules(request, 'messages', 'metadata.user_id')];
  };
  t.strictSame(told({ user: 'u' }), [['user'], ['user']]);
  t.strictSame(told({ safety_identifier: 's' }), [['safety_identifier'], ['safety_identifier']]);
});

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
