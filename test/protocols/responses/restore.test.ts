import assert from 'node:assert/strict';
import { test } from 'tap';
import { carryInId } from '../../../src/conversation/carrying-id.js';
import { tagSignature } from '../../../src/conversation/signature.js';
import type { Endpoint } from '../../../src/protocols/endpoint.js';
import { compactResponses, responses, responsesCodec } from '../../../src/protocols/responses/index.js';
import { tagReasoning } from '../../../src/protocols/responses/reasoning.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { createSealer } from '../../../src/wire/seal.js';
import { fc } from '../../support/seed.js';
import { mayNeedRestoring } from '../may-need-restoring.js';
import { agentBody } from './bodies.js';
import { context, decode, sealer, target } from './conversation.js';

const restoreOf = (endpoint: Endpoint) => (body: JsonObject) =>
  endpoint.translation?.restore(body, sealer, target) ?? null;
const restore = restoreOf(responses);
const inputOf = (body: JsonObject | null) => (body?.input ?? []) as JsonObject[];
const user = { role: 'user', content: 'hi' };
const foreign = tagSignature({ protocol: 'messages', model: 'c', value: 'sig', redacted: false });
const reasoning = (encrypted_content: string, more: object = {}) => ({
  type: 'reasoning',
  id: 'rs_ours_0',
  summary: [],
  encrypted_content,
  status: 'completed',
  ...more,
});

/** A compaction as a client gets it. */
function compaction(): object {
  const choice = {
    parts: [{ kind: 'text' as const, text: 'Oslo.' }],
    finish: 'stop' as const,
    stopSequence: null,
  };
  const text = responsesCodec.encodeAnswer(
    { choices: [choice], usage: null },
    { ...context, compaction: 'object' },
  );
  const { output } = JSON.parse(text) as { output: object[] };
  return output[0] as object;
}

test('a body with nothing of ours stays as it is', async (t) => {
  for (const body of [
    agentBody,
    { input: 'hi' },
    { input: null },
    { model: 'm' },
    {
      input: [
        reasoning('gAAA'),
        reasoning('gw1.no token'),
        { type: 'compaction', encrypted_content: 'gAAA' },
      ],
    },
    { input: [{ ...user, content: foreign }, null, 5, { type: 'reasoning', encrypted_content: 5 }] },
  ])
    t.equal(restore(body as JsonObject), null);
});

test('reasoning gets back what its upstream gave it, and that of another vendor is left out', async (t) => {
  const body = {
    metadata: { a: 'b' },
    input: [
      user,
      reasoning(tagReasoning({ id: 'rs_theirs', content: 'gAAA' }, 'up'), { news: 1 }),
      reasoning(foreign),
      reasoning(tagReasoning({ id: '', content: 'gBBB' }, 'up')),
      reasoning(tagReasoning({ id: 'rs_2', content: 'gCCC' }, 'up'), { id: undefined }),
      user,
    ],
    model: 'm',
  };
  const given = JSON.parse(JSON.stringify(body)) as typeof body & JsonObject;
  const before = JSON.stringify(given);
  const restored = restore(given);
  t.equal(
    JSON.stringify(restored),
    JSON.stringify({
      metadata: { a: 'b' },
      input: [
        user,
        reasoning('gAAA', { id: 'rs_theirs', news: 1 }),
        { type: 'reasoning', summary: [], encrypted_content: 'gBBB', status: 'completed' },
        { type: 'reasoning', summary: [], encrypted_content: 'gCCC', status: 'completed', id: 'rs_2' },
        user,
      ],
      model: 'm',
    }),
  );
  t.equal(JSON.stringify(given), before, 'what was given is not changed');
  t.equal(inputOf(restored)[0], given.input[0], 'nor copied where it need not be');
});

test('a token without a text does not bring the id that it names', async (t) => {
  for (const token of ['gw1.r.responses..rs_1:', 'gw1.r.responses..rs_1: ', 'gw1.r.responses.dXA.rs_1:\n'])
    for (const carried of [token, Buffer.from(token).toString('base64')])
      for (const id of ['rs_ours_0', undefined])
        t.strictSame(restore({ input: [user, reasoning(carried, { id })] }), { input: [user] }, token);
  t.same(
    inputOf(restore({ input: [user, reasoning(tagReasoning({ id: 'rs_1', content: ' ' }, ''))] })),
    [user],
    'nor does one of an upstream that gave none',
  );
});

test('a compaction that was made here becomes the text that it is', async (t) => {
  const input = [compaction(), { type: 'compaction', encrypted_content: 'gAAA' }, user];
  for (const endpoint of [responses, compactResponses]) {
    const [first, ...others] = inputOf(restoreOf(endpoint)({ model: 'm', input }));
    t.match(first, {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: /^Summary .*Oslo\.$/s }],
    });
    t.same(others, input.slice(1), 'one of the upstream’s own stays');
    t.same(decode({ input: [first] }).turns, decode({ input: [input[0]] }).turns);
  }
});

test('a compaction that was sealed here and does not open is left out', async (t) => {
  const other = createSealer('another secret').seal('{"kind":"compaction","summary":"x"}');
  for (const encrypted_content of [other, 'gwc1.', sealer.seal('{"kind":"x"}')])
    t.strictSame(restore({ input: [user, { type: 'compaction', encrypted_content }] }), { input: [user] });
});

test('what was sealed on the way to a client is restored on the way back', async (t) => {
  const id = fc.constantFrom('', 'rs_1', 'rs_2');
  const content = fc.string({ minLength: 1 }).filter((text) => text.trim() !== '');
  fc.assert(
    fc.property(fc.array(fc.record({ id, content }), { minLength: 1, maxLength: 5 }), (list) => {
      const input = list.map((each) => reasoning(tagReasoning(each, 'up')));
      const restored = inputOf(restore({ input }));
      assert.deepEqual(
        restored.map((item) => ({ id: item.id ?? '', content: item.encrypted_content })),
        list.map((each) => ({ ...each })),
      );
    }),
  );
  t.pass();
});

test('searches that another vendor ran are left out, and those of its own stay', async (t) => {
  const part = { kind: 'search' as const, query: 'x', results: [{ url: 'https://a.example', title: 'A' }] };
  const choice = { parts: [part], finish: 'stop' as const, stopSequence: null };
  const text = responsesCodec.encodeAnswer({ choices: [choice], usage: null }, context);
  const { output } = JSON.parse(text) as { output: JsonObject[] };
  t.match(output, [{ type: 'web_search_call' }]);
  const body = { input: [user, ...output, user] };
  t.ok(mayNeedRestoring(responses, JSON.stringify(body)));
  t.same(restore(body), { input: [user, user] });
  const native = { input: [user, { type: 'web_search_call', id: 'ws_67c9', status: 'completed' }, user] };
  t.notOk(mayNeedRestoring(responses, JSON.stringify(native)));
  t.equal(restore(native), null);
  for (const id of ['ws_gw1_ab', 'ws_gw1_ab_0x', 'ws_gw1_ab_0_1', 'ws_gw1_upstream_0', 'xws_gw1_ab_0'])
    t.equal(
      restore({ input: [user, { type: 'web_search_call', id }] }),
      null,
      `${id} is not of this gateway`,
    );
});

test('reasoning of another vendor that is not encrypted is left out, as a client returns it', async (t) => {
  const parts = [{ kind: 'reasoning' as const, text: 'Hm.', signature: null }];
  const choice = { parts, finish: 'stop' as const, stopSequence: null };
  const encoded = responsesCodec.encodeAnswer(
    { choices: [choice], usage: null },
    { ...context, showReasoning: true },
  );
  const { output } = JSON.parse(encoded) as { output: JsonObject[] };
  t.match(output, [{ type: 'reasoning', summary: [{ text: 'Hm.' }] }]);
  // Codex 0.171 writes what it was not given as null, and returns it to whichever model comes next.
  for (const more of [{}, { content: null, encrypted_content: null }, { encrypted_content: '' }]) {
    const body = { input: [user, ...output.map((item) => ({ ...item, ...more })), user], store: false };
    t.ok(mayNeedRestoring(responses, JSON.stringify(body)));
    t.same(restore(body), { input: [user, user], store: false });
  }
  const native = { input: [user, { type: 'reasoning', id: 'rs_67c9', summary: [] }, user] };
  t.notOk(mayNeedRestoring(responses, JSON.stringify(native)));
  t.equal(restore(native), null, 'what the vendor keeps itself stays');
});

test('ids of calls lose the tokens that they carry', async (t) => {
  const carrying = carryInId('call_1', [foreign]) ?? '';
  const sent = (id: string) => ({
    input: [
      user,
      { type: 'function_call', id: 'fc_ours_0', call_id: id, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: id, output: carrying },
    ],
  });
  t.ok(mayNeedRestoring(responses, JSON.stringify(sent(carrying))));
  t.same(restore(sent(carrying)), sent('call_1'));
  const twice = (id: string) => ({
    input: [{ type: 'function_call', id, call_id: id, name: 'f', arguments: '{}' }],
  });
  t.same(restore(twice(carrying)), twice('call_1'), 'also where a client writes it as the id of the item');
  t.equal(restore(sent(carrying.replace('__thought__Z3cx', '__thought__AAAA'))), null, 'of another gateway');
});
