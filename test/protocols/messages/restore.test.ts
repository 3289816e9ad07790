import { test } from 'tap';
import { carryInId, markWithoutReasoning } from '../../../src/conversation/carrying-id.js';
import type { TargetOptions } from '../../../src/conversation/codec.js';
import { noSignature, tagSignature } from '../../../src/conversation/signature.js';
import { countTokens, messages, messagesCodec } from '../../../src/protocols/messages/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { createSealer } from '../../../src/wire/seal.js';
import { mayNeedRestoring } from '../may-need-restoring.js';
import { context, target, token } from './samples.js';

const sealer = createSealer('a secret of the tests');
const restore = (body: JsonObject, thought: TargetOptions['thinking'] = 'budget') =>
  messages.translation?.restore(body, sealer, { ...target, thinking: thought }) ?? null;

const foreign = tagSignature({ protocol: 'responses', model: 'm', value: 'x', redacted: true });
const user = { role: 'user', content: 'hi' };
const text = { type: 'text', text: 'so', cache_control: { type: 'ephemeral' } };
const thinking = (signature: unknown) => ({ type: 'thinking', thinking: 'hm', signature });
const assistant = (...content: unknown[]) => ({ role: 'assistant', content });
const body = (...list: unknown[]) => ({ zebra: 1, messages: list, model: 'm', x_unknown: { a: null } });

test('tokens of its own vendor are what the vendor gave', async (t) => {
  const sent = body(user, assistant(thinking(token('s')), thinking(token('enc', true)), text), user);
  const before = structuredClone(sent);
  const expected = body(
    user,
    assistant(thinking('s'), { type: 'redacted_thinking', data: 'enc' }, text),
    user,
  );
  t.equal(JSON.stringify(restore(sent)), JSON.stringify(expected), 'the order of the members too');
  t.same(sent, before, 'the body itself is not changed');
  const redacted = { type: 'redacted_thinking', data: token('enc', true) };
  t.same(restore(body(assistant(redacted))), body(assistant({ type: 'redacted_thinking', data: 'enc' })));
});

test('what another vendor signed is left out, and a message that had nothing else', async (t) => {
  const redacted = { type: 'redacted_thinking', data: foreign };
  t.same(
    restore(body(user, assistant(thinking(foreign), redacted, text), user)),
    body(user, assistant(text), user),
  );
  t.same(restore(body(user, assistant(thinking(foreign)), user)), body(user, user));
});

test('words that a token carries stand in its block again, and it goes where they are lost', async (t) => {
  const signed = { protocol: 'messages', model: 'm', value: 's', redacted: false } as const;
  const block = (token: string) => ({ type: 'thinking', thinking: '', signature: token });
  t.same(
    restore(body(user, assistant(block(tagSignature({ ...signed, words: 'hm' })), text), user)),
    body(user, assistant(thinking('s'), text), user),
  );
  t.same(
    restore(body(user, assistant(block(tagSignature({ ...signed, isWordless: true })), text), user)),
    body(user, assistant(text), user),
  );
});

test('a signature that is empty goes with its block: the vendor refuses it', async (t) => {
  t.same(restore(body(user, assistant(thinking(''), text), user)), body(user, assistant(text), user));
  t.same(restore(body(user, assistant(thinking('')), user)), body(user, user));
  for (const written of ['"signature":""', '"signature" : ""', '"x":1,"signature":"a","signature":\n""'])
    t.ok(mayNeedRestoring(messages, `{${written}}`), written);
  for (const written of ['"signature":"RXdB"', '"text":"\\"signature\\":\\"\\""', '"signature"'])
    t.notOk(mayNeedRestoring(messages, `{${written}}`), written);
});

test('thinking with a budget goes where the calls that are answered lost theirs', async (t) => {
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const results = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] };
  const enabled = { thinking: { type: 'enabled', budget_tokens: 1024 } };
  const edit = (type: string) => ({ type });
  const edits = { edits: [edit('clear_thinking_20251015'), edit('clear_tool_uses_20250919')] };
  const lost = { ...body(user, assistant(thinking(''), call), results), ...enabled };
  const restored = body(user, assistant(call), results);
  t.same(restore(lost), restored);
  t.same(restore({ ...lost, context_management: edits }), {
    ...restored,
    context_management: { edits: [edit('clear_tool_uses_20250919')] },
  });
  t.same(
    restore({ ...lost, context_management: { edits: [edit('clear_thinking_20251015')] } }),
    restored,
    'edits of thinking go without it',
  );
  t.same(restore(lost, 'adaptive'), { ...restored, ...enabled }, 'a model that adapts does without');
  const adaptive = { thinking: { type: 'adaptive' } };
  t.same(restore({ ...lost, ...adaptive }), { ...restored, ...adaptive });
  t.same(
    restore({ ...body(user, assistant(thinking(''), call), results, assistant(text), user), ...enabled }),
    { ...body(user, assistant(call), results, assistant(text), user), ...enabled },
    'the loop is over',
  );
  t.same(
    restore({ ...body(user, assistant(thinking(token('s')), call), results), ...enabled }),
    { ...body(user, assistant(thinking('s'), call), results), ...enabled },
    'its own thinking is there',
  );
});

test('so it does where their results are in several messages, and where no thinking led to them', async (t) => {
  const thinks = { thinking: { type: 'enabled', budget_tokens: 1024 } };
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (id: string) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: 'x' }],
  });
  const apart = [assistant(text), assistant(use('c'), use('d')), result('c'), result('d')];
  t.same(restore({ ...body(user, assistant(thinking('')), ...apart), ...thinks }), body(user, ...apart));
  const marked = markWithoutReasoning('c');
  const order = { role: 'system', content: 'Be brief.' };
  const sent = { ...body(user, assistant(text, use(marked)), result(marked), order), ...thinks };
  t.ok(mayNeedRestoring(messages, JSON.stringify(sent)));
  t.same(restore(sent), body(user, assistant(text, use('c')), result('c'), order));
  const joined = [assistant(thinking(token('s'))), assistant(use('c')), result('c')];
  t.same(
    restore({ ...body(user, ...joined), ...thinks }),
    { ...body(user, assistant(thinking('s')), assistant(use('c')), result('c')), ...thinks },
    'messages of one role are one for the vendor',
  );
});

test('no thread begins with a turn that has lost its thinking', async (t) => {
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const results = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] };
  const begun = { thread: { type: 'create' }, thinking: { type: 'enabled', budget_tokens: 1024 } };
  t.same(
    restore({ ...body(user, assistant(thinking(''), call), results), ...begun }),
    body(user, assistant(call), results),
  );
  t.same(restore({ ...body(user, assistant(thinking(''), text), user), ...begun }), {
    ...body(user, assistant(text), user),
    ...begun,
  });
  const continued = { thread: { type: 'continue', previous_message_id: 'msg_1' } };
  t.same(
    restore({ ...body(assistant(thinking(''), call), results), ...begun, ...continued }),
    { ...body(assistant(call), results), ...continued },
    'one that is continued has the messages before these',
  );
});

test('reasoning without a signature of any vendor is left out', async (t) => {
  t.same(
    restore(body(user, assistant(thinking(noSignature), text), user)),
    body(user, assistant(text), user),
  );
});

test('ids of calls lose the tokens that they carry', async (t) => {
  const carrying = carryInId('toolu_1', [foreign]) ?? '';
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: { id: carrying } });
  const result = (id: string) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: 'x' }],
  });
  const sent = body(user, assistant(text, use(carrying)), result(carrying));
  t.ok(mayNeedRestoring(messages, JSON.stringify(sent)));
  t.same(restore(sent), body(user, assistant(text, use('toolu_1')), result('toolu_1')));
  const others = carrying.replace('__thought__Z3cx', '__thought__AAAA');
  t.equal(restore(body(user, assistant(use(others)), result(others))), null, 'of another gateway');
});

test('a body that holds nothing of the gateway needs no change', async (t) => {
  const bodies: JsonObject[] = [
    {},
    body(),
    { messages: 'gw1.' },
    body(user, assistant(thinking('vendor'), { type: 'redacted_thinking', data: 'd' }, text)),
    body(user, assistant(thinking(5), thinking(undefined), null, 7), null, [], { role: 'user' }),
    body({ role: 'user', content: token('s') }),
    body({ role: 'user', content: [{ type: 'text', text: token('s') }] }),
    body(assistant()),
  ];
  for (const each of bodies) t.equal(restore(each), null, JSON.stringify(each));
});

test('odd entries beside a token stay', async (t) => {
  t.same(
    restore(body(null, assistant(null, thinking(token('s')), 7))),
    body(null, assistant(null, thinking('s'), 7)),
  );
});

test('the question for the number of tokens is restored alike', async (t) => {
  t.equal(countTokens.translation?.restore, messages.translation?.restore);
});

test('searches that another vendor ran are left out, and those of its own stay', async (t) => {
  const answer = {
    choices: [
      {
        parts: [
          { kind: 'search' as const, query: 'x', results: [{ url: 'https://a.example', title: 'A' }] },
          { kind: 'search' as const, query: 'y', results: [] },
          {
            kind: 'text' as const,
            text: 'so',
            citations: [{ start: 0, end: 2, url: 'https://a.example', title: 'A' }],
          },
        ],
        finish: 'stop' as const,
        stopSequence: null,
      },
    ],
    usage: null,
  };
  const { content } = JSON.parse(messagesCodec.encodeAnswer(answer, context)) as { content: JsonObject[] };
  t.equal(content.length, 5);
  const sent = body(user, assistant(...content), user);
  t.ok(mayNeedRestoring(messages, JSON.stringify(sent)));
  t.same(restore(sent), body(user, assistant({ type: 'text', text: 'so' }), user));
  const [, , call, none] = content;
  const empty = body(assistant(call, none, text));
  t.ok(mayNeedRestoring(messages, JSON.stringify(empty)), 'one that found nothing');
  t.same(restore(empty), body(assistant(text)));

  const cited = { type: 'web_search_result_location', encrypted_index: 'Eo8B', url: 'https://a.example' };
  const native = body(
    user,
    assistant(
      { type: 'server_tool_use', id: 'srvtoolu_01A', name: 'web_search', input: { query: 'x' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_01A',
        content: [{ type: 'web_search_result', url: 'https://a.example', encrypted_content: 'Eo8C' }],
      },
      { type: 'text', text: 'so', citations: [cited] },
    ),
    user,
  );
  t.notOk(mayNeedRestoring(messages, JSON.stringify(native)));
  t.equal(restore(native), null);
});
