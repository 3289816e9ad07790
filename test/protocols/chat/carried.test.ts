import { test } from 'tap';
import { carryBeside, carryInId } from '../../../src/conversation/carrying-id.js';
import { tagSignature } from '../../../src/conversation/signature.js';
import { tagUnsigned } from '../../../src/conversation/unsigned-reasoning.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { decodeMessages } from './samples.js';

const seal = (protocol: 'messages' | 'generateContent', value: string, redacted = false) =>
  tagSignature({ protocol, model: 'm', value, redacted });
const [signed, google] = [seal('messages', 's'), seal('generateContent', 'g')];
const call = (id: string, more: object = {}) => ({ ...more, id, type: 'function', function: { name: 'f' } });
const carrying = (id: string, ...tokens: string[]) => call(carryInId(id, tokens) ?? '');
const partsOf = (message: JsonObject) => {
  const [turn] = decodeMessages({ role: 'assistant', ...message }).turns;
  return turn?.role === 'assistant' ? turn.parts : [];
};
const reasoning = (signature: string, text = '') => ({ kind: 'reasoning', text, signature });

test('what a messages upstream signed begins the message, with its text where that is plain', async (t) => {
  const message = { content: 'so', reasoning_content: 'hm', tool_calls: [carrying('c1', signed)] };
  t.match(partsOf(message), [reasoning(signed, 'hm'), { kind: 'text' }, { kind: 'toolCall', id: 'c1' }]);
  t.match(partsOf({ ...message, reasoning_content: undefined }), [reasoning(signed), {}, {}]);
  const encrypted = seal('messages', 'e', true);
  const both = { ...message, tool_calls: [carrying('c1', signed, encrypted)] };
  t.match(partsOf(both), [reasoning(signed), reasoning(encrypted), { kind: 'text' }, { id: 'c1' }]);
});

test('what a generateContent upstream signed stands before its call', async (t) => {
  const beside = { extra_content: { google: { thought_signature: carryBeside([google]) } } };
  for (const carrier of [carrying('c1', google), call('c1', beside)])
    t.match(partsOf({ content: 'so', tool_calls: [call('c0'), carrier] }), [
      { kind: 'text' },
      { id: 'c0' },
      reasoning(google),
      { id: 'c1' },
    ]);
  const beforeUs = { extra_content: { google: { thought_signature: 'U0lH' } } };
  const own = tagSignature({ protocol: 'generateContent', model: '', value: 'U0lH', redacted: false });
  t.match(partsOf({ tool_calls: [call('c1', beforeUs)] }), [reasoning(own), {}]);
});

test('other reasoning is that of a chat upstream, under its name', async (t) => {
  t.match(partsOf({ content: 'so', reasoning: 'hm' }), [reasoning(tagUnsigned('reasoning', ''), 'hm'), {}]);
  t.match(partsOf({ content: 'so', reasoning_content: '', reasoning: null }), [{ kind: 'text' }]);
});

test('a result names its call by the id without what that carried', async (t) => {
  const id = carryInId('c1', [signed]) ?? '';
  const { turns } = decodeMessages(
    { role: 'assistant', tool_calls: [carrying('c1', signed)] },
    { role: 'tool', tool_call_id: id, content: 'x' },
  );
  t.match(turns[1], { parts: [{ kind: 'toolResult', callId: 'c1', name: 'f' }] });
});
