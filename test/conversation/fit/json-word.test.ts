import { test } from 'tap';
import { fitJsonWord } from '../../../src/conversation/fit/answer-format.js';
import type { ConversationRequest, Turn } from '../../../src/conversation/request.js';
import { plain } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const says = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] });
const inChat = { ...anything, jsonWord: 'anywhere' as const };
const inResponses = { ...anything, jsonWord: 'turns' as const };
const json = { ...plain, from: 'messages' as const, format: { kind: 'object' as const } };

test('an answer that is an object of JSON is asked for in words where nobody has', async (t) => {
  const bare = { ...json, system: ['be brief'], turns: [says('hi')] };
  t.match(fittedBy(fitJsonWord, bare, inChat).request, {
    system: ['be brief', 'Answer with a single valid JSON object.'],
    turns: [{ role: 'user' }],
  });
  t.match(fittedBy(fitJsonWord, bare, inResponses).request, {
    system: ['be brief'],
    turns: [{ role: 'system', text: 'Answer with a single valid JSON object.' }, { role: 'user' }],
  });
});

test('nothing is added where the word is there, or not asked for', async (t) => {
  const unchanged = (request: ConversationRequest, rules: typeof anything, name: string) =>
    t.equal(fittedBy(fitJsonWord, request, rules).request, request, name);
  const inSystem = { ...json, system: ['answer in JSON'], turns: [says('hi')] };
  unchanged(inSystem, inChat, 'instructions count in chat');
  t.equal(fittedBy(fitJsonWord, inSystem, inResponses).request.turns.length, 2, 'and not in responses');
  unchanged({ ...json, turns: [says('a json, please')] }, inResponses, 'a turn of the user');
  unchanged({ ...json, turns: [{ role: 'system', text: 'Json' }, says('a')] }, inResponses, 'a message');
  unchanged({ ...json, turns: [says('hi')] }, anything, 'a vendor who does not ask for it');
  unchanged({ ...plain, turns: [says('hi')] }, inChat, 'a text');
  unchanged({ ...json, from: 'responses', turns: [says('hi')] }, inResponses, "the vendor's own client");
  const later = { ...json, turns: [says('hi'), says('json')] };
  t.equal(
    fittedBy(fitJsonWord, later, inResponses).request.turns.length,
    3,
    'the next turn of a conversation begins as the one before',
  );
});
