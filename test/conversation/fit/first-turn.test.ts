import { test } from 'tap';
import type { RequestRules } from '../../../src/conversation/codec.js';
import { fitFirstTurn } from '../../../src/conversation/fit/turns.js';
import type { AssistantPart, Turn } from '../../../src/conversation/request.js';
import { plain } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const text = { kind: 'text' as const, text: 'a' };
const blank = { kind: 'text' as const, text: ' ' };
const call: AssistantPart = { kind: 'toolCall', id: '1', name: 'f', input: '{}', custom: false, at: '' };
const assistant = (...parts: AssistantPart[]): Turn => ({ role: 'assistant', parts });
const user: Turn = { role: 'user', parts: [text] };
const filler: Turn = { role: 'user', parts: [{ kind: 'text', text: '(The conversation begins here.)' }] };

const ofMessages = { ...plain, from: 'messages' as const };
const added = (firstTurn: RequestRules['firstTurn'], ...turns: Turn[]): boolean => {
  const { request } = fittedBy(fitFirstTurn, { ...ofMessages, turns }, { ...anything, firstTurn });
  return request.turns !== turns && request.turns[0]?.role === 'user' && request.turns.length > turns.length;
};

test('where the user has to begin, a text of the user stands before the assistant', async (t) => {
  t.strictSame(
    fittedBy(fitFirstTurn, { ...plain, turns: [assistant(text), user] }, { ...anything, firstTurn: 'user' })
      .request.turns,
    [filler, assistant(text), user],
  );
  t.ok(added('user', assistant(call)));
  t.ok(
    added('user', { role: 'user', parts: [blank] }, assistant(text), user),
    'what is blank is not written',
  );
  t.notOk(added('user', user, assistant(text)));
  t.notOk(
    added('user', { role: 'system', text: 's' }, assistant(text)),
    'instructions are texts of the user',
  );
  t.notOk(added('user', assistant(blank), user));
  t.notOk(added('user'));
});

test('where only a call may not come first, a text may', async (t) => {
  t.notOk(
    added('noCall', { role: 'user', parts: [blank] }, assistant(call)),
    'what is blank is written here, and the call follows it',
  );
  t.ok(added('noCall', { role: 'user', parts: [{ kind: 'text', text: '' }] }, assistant(call)));
  t.ok(added('noCall', assistant(call)));
  t.ok(added('noCall', assistant(text, call)));
  t.ok(added('noCall', assistant(text), assistant(call)), 'turns in a row are one content');
  t.notOk(added('noCall', assistant(text), user, assistant(call)));
  t.notOk(added('any', assistant(call)));
});

test('instructions alone, which OpenAI answers, are no conversation for others', async (t) => {
  const silent: Partial<RequestRules> = { instructionsAlone: false };
  const given = (rules: Partial<RequestRules>, ...turns: Turn[]) =>
    fittedBy(fitFirstTurn, { ...plain, from: 'chat', system: ['s'], turns }, { ...anything, ...rules });
  t.strictSame(given(silent).request.turns, [filler]);
  const empty: Turn = { role: 'user', parts: [{ kind: 'text', text: '' }] };
  t.strictSame(given({ ...silent, firstTurn: 'noCall' }, empty).request.turns, [filler, empty]);
  const said: Turn = { role: 'user', parts: [blank] };
  t.strictSame(given({ ...silent, firstTurn: 'user' }, said).request.turns, [filler, said]);
  t.strictSame(given({ ...silent, firstTurn: 'noCall' }, said).request.turns, [said], 'it is written there');
  t.strictSame(given(silent, empty).request.turns, [empty], 'it is written there');
  t.strictSame(given({}).request.turns, [], 'a chat upstream takes them');
  const thought: AssistantPart = { kind: 'reasoning', text: 'hm', signature: null };
  const refusal = { kind: 'refusal' as const, text: '' };
  for (const firstTurn of ['any', 'noCall', 'user'] as const) {
    const alone = assistant(thought);
    t.strictSame(given({ ...silent, firstTurn }, alone).request.turns, [filler, alone], 'nor is a thought');
  }
  for (const firstTurn of ['noCall', 'user'] as const) {
    const unsaid = assistant(thought, refusal);
    t.strictSame(given({ ...silent, firstTurn }, unsaid).request.turns, [filler, unsaid]);
  }
  const nothing = { ...plain, from: 'generateContent' as const, system: [], turns: [] };
  t.strictSame(fittedBy(fitFirstTurn, nothing, anything).request.turns, [filler], 'not even instructions');
  t.strictSame(
    fittedBy(fitFirstTurn, { ...ofMessages, system: ['s'], turns: [] }, { ...anything, ...silent }).request
      .turns,
    [],
    'Anthropic refuses it of its own clients',
  );
});
