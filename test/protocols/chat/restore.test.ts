import { test } from 'tap';
import { carryBeside, carryInId } from '../../../src/conversation/carrying-id.js';
import { tagSignature } from '../../../src/conversation/signature.js';
import { chat } from '../../../src/protocols/chat/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { createSealer } from '../../../src/wire/seal.js';
import { mayNeedRestoring } from '../may-need-restoring.js';
import { target } from './samples.js';

const sealer = createSealer('a secret of the tests');
const restore = (body: JsonObject) => chat.translation?.restore(body, sealer, target) ?? null;
const token = tagSignature({ protocol: 'messages', model: 'm', value: 's', redacted: false });
const carrying = carryInId('c1', [token]) ?? '';
const call = (id: unknown, more: object = {}) => ({ ...more, id, type: 'function', function: { name: 'f' } });
const conversation = (id: string, more: object = {}) => ({
  zebra: 1,
  messages: [
    { role: 'user', content: carrying },
    { role: 'assistant', reasoning_content: 'hm', tool_calls: [call(id, more), call('c2')] },
    { role: 'tool', tool_call_id: id, content: 'x' },
    { role: 'tool', tool_call_id: 'c2', content: 'y' },
  ],
});

test('ids and calls lose what another upstream signed, and nothing else changes', async (t) => {
  t.equal(JSON.stringify(restore(conversation(carrying))), JSON.stringify(conversation('c1')));
  const extra = { extra_content: { google: { thought_signature: carryBeside([token]) } } };
  t.same(restore(conversation('c1', extra)), conversation('c1'));
  for (const body of [conversation(carrying), conversation('c1', extra)])
    t.ok(mayNeedRestoring(chat, JSON.stringify(body)));
});

test('a body that holds nothing of the gateway needs no change', async (t) => {
  const vendors = { extra_content: { google: { thought_signature: 'U0lH' } } };
  const bodies: JsonObject[] = [
    {},
    { messages: 'x' },
    { messages: [null, 7, { role: 'assistant', tool_calls: [null, 7, call(undefined), call(5)] }] },
    conversation('c1', vendors),
    conversation('c1__thought__U0lH'),
  ];
  for (const body of bodies) t.equal(restore(body), null, JSON.stringify(body));
  t.notOk(mayNeedRestoring(chat, JSON.stringify({ messages: [call('c1__thought__U0lH', vendors)] })));
});
