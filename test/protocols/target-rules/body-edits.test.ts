import assert from 'node:assert/strict';
import { test } from 'tap';
import { mergeRules } from '../../../src/config/rules.js';
import type { RuleSettings } from '../../../src/config/rules-schema.js';
import type { Protocol } from '../../../src/config/types.js';
import { protocols } from '../../../src/config/words.js';
import { bodyEdits, type RuledBody } from '../../../src/protocols/target-rules/body-edits.js';
import { editMembers } from '../../../src/wire/member-edits.js';
import { cases, fc } from '../../support/seed.js';
import { anyJson, anyText, noise, writeJson } from '../../wire/json-text.js';

const plain = { isTranslated: false, isCount: false, model: null, includeUsage: false };

function pieces(body: Buffer, settings: RuleSettings, protocol: Protocol, kind: Partial<RuledBody>) {
  const rules = mergeRules([settings]);
  if (rules === null) throw new Error('these rules change nothing');
  return editMembers(body, bodyEdits(rules, { ...plain, protocol, ...kind }));
}

function ruled(
  body: unknown,
  settings: RuleSettings,
  protocol: Protocol,
  kind: Partial<RuledBody> = {},
): unknown {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return JSON.parse(Buffer.concat(pieces(Buffer.from(text), settings, protocol, kind)).toString());
}

test('efforts are mapped wherever a protocol has them, and nowhere else', async (t) => {
  const efforts = { xhigh: 'high', Ultra: 'max', none: 'low' };
  const cases: [Protocol, object, object][] = [
    ['chat', { reasoning_effort: 'xhigh' }, { reasoning_effort: 'high' }],
    // The AI SDK's compatible provider has sent it twice.
    ['chat', { reasoning_effort: 'low', reasoningEffort: 'low', x: 1 }, { reasoning_effort: 'low', x: 1 }],
    ['chat', { reasoningEffort: 'xhigh', reasoning_effort: 'xhigh' }, { reasoning_effort: 'high' }],
    ['chat', { reasoning: { effort: 'ULTRA', x: 1 } }, { reasoning: { effort: 'max', x: 1 } }],
    ['responses', { reasoning: { effort: 'none' } }, { reasoning: { effort: 'low' } }],
    ['responses', { reasoning_effort: 'none' }, { reasoning_effort: 'none' }],
    ['messages', { output_config: { effort: 'xhigh' } }, { output_config: { effort: 'high' } }],
    [
      'generateContent',
      { generationConfig: { thinkingConfig: { thinkingLevel: 'XHIGH' } } },
      { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH' } } },
    ],
    [
      'generateContent',
      { generation_config: { thinking_config: { thinking_level: 'none' } } },
      { generation_config: { thinking_config: { thinking_level: 'LOW' } } },
    ],
    ['embeddings', { reasoning_effort: 'xhigh' }, { reasoning_effort: 'xhigh' }],
  ];
  for (const [protocol, before, after] of cases)
    t.strictSame(ruled(before, { efforts }, protocol), after, JSON.stringify(before));
  for (const effort of ['high', 'medium', null, 5, 'constructor', 'x'.repeat(300)])
    t.strictSame(ruled({ reasoning_effort: effort }, { efforts }, 'chat'), { reasoning_effort: effort });
  t.strictSame(
    ruled({ reasoning_effort: 'xhigh' }, { efforts }, 'chat', { isTranslated: true }),
    { reasoning_effort: 'xhigh' },
    'what a translation has written was mapped before',
  );
});

test('roles are mapped in the list of turns of each protocol', async (t) => {
  const roles = { developer: 'system' };
  const turns = [
    { role: 'developer', content: [{ role: 'developer' }] },
    { content: 'x' },
    { role: 'user' },
    'developer',
  ];
  const after = [{ role: 'system', content: [{ role: 'developer' }] }, ...turns.slice(1)];
  for (const [protocol, list] of [
    ['chat', 'messages'],
    ['responses', 'input'],
    ['messages', 'messages'],
    ['generateContent', 'contents'],
  ] as const)
    t.strictSame(ruled({ [list]: turns }, { roles }, protocol), { [list]: after }, protocol);
  t.strictSame(ruled({ input: 'developer' }, { roles }, 'responses'), { input: 'developer' });
});

test('messages of the assistant that have lost their reasoning get some, where a chat target refuses them', async (t) => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const before = [
    { role: 'developer', content: 'x' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'x' },
    { tool_calls: [call], reasoning_content: 'I think.', role: 'assistant' },
    { role: 'assistant', reasoning_content: null, tool_calls: [call] },
    { role: 'assistant', reasoning_content: '', content: 'x' },
    { role: 'assistant', reasoning_content: 'long '.repeat(2000), content: 'x' },
    { role: 'user', content: [{ role: 'assistant' }] },
  ];
  const after = [
    { role: 'system', content: 'x' },
    { role: 'assistant', reasoning_content: '.', content: null, tool_calls: [call] },
    before[2],
    before[3],
    { role: 'assistant', reasoning_content: '.', tool_calls: [call] },
    { role: 'assistant', reasoning_content: '.', content: 'x' },
    before[6],
    before[7],
  ];
  const rules = { fillReasoning: true, roles: { developer: 'system' } };
  for (const isTranslated of [false, true])
    t.strictSame(ruled({ messages: before }, rules, 'chat', { isTranslated }), { messages: after });
  for (const protocol of ['responses', 'generateContent'] as const)
    t.strictSame(ruled({ messages: before }, { fillReasoning: true }, protocol), { messages: before });
  t.strictSame(ruled({ messages: 'x' }, { fillReasoning: true }, 'chat'), { messages: 'x' });
});

test('a message with calls that has lost its thinking gets a block of it', async (t) => {
  const text = { type: 'text', text: 'word '.repeat(2000) };
  const call = { type: 'tool_use', id: 'c', name: 'f', input: { type: 'thinking', thinking: 'x' } };
  const filled = { type: 'thinking', thinking: '.', signature: '' };
  const lacking = [[call], [text, call, call]];
  const complete = [
    [{ type: 'thinking', thinking: 'x' }, call],
    [{ type: 'redacted_thinking', data: 'x' }, text, call],
    [text],
    [],
    'tool_use',
    [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'tool_use' }] }],
  ];
  const messages = (contents: readonly unknown[]) =>
    contents.map((content) => ({ role: 'assistant', content }));
  for (const rules of [{ fillReasoning: true }, { fillReasoning: true, roles: { developer: 'system' } }])
    for (const isTranslated of [false, true]) {
      const of = (contents: readonly unknown[]) =>
        ruled({ messages: messages(contents) }, rules, 'messages', { isTranslated });
      t.strictSame(of(lacking), { messages: messages(lacking.map((blocks) => [filled, ...blocks])) });
      t.strictSame(of(complete), { messages: messages(complete) });
    }
});

test('a block of thinking is filled in where it is one: for the assistant, thinking, and however words are written', async (t) => {
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const filled = { type: 'thinking', thinking: '.', signature: '' };
  const of = (body: object, rules: object = {}, more = {}) =>
    ruled(body, { fillReasoning: true, ...rules }, 'messages', more);
  const lacking = { messages: [{ content: [call], role: 'assistant' }] };
  const full = { messages: [{ content: [filled, call], role: 'assistant' }] };
  t.strictSame(of(lacking), full, 'the role may stand behind');
  const user = { messages: [{ role: 'user', content: [call] }, { content: [call] }] };
  t.strictSame(of(user), user);
  t.strictSame(of(lacking, {}, { isCount: true }), lacking, 'a request for a count');
  const off = { thinking: { type: 'disabled' } };
  t.strictSame(of({ ...off, ...lacking }), { ...off, ...lacking });
  t.strictSame(of({ ...lacking, ...off }), { ...lacking, ...off });
  t.strictSame(of({ ...off, ...lacking }, { thinking: 'never_off' }), full, 'a rule has it on');
  const on = { thinking: { type: 'enabled', budget_tokens: 1024 } };
  t.strictSame(of({ ...on, ...lacking }), { ...on, ...full });
  const escaped = JSON.stringify(lacking)
    .replace('tool_use', 'tool\\u005fuse')
    .replace('assistant', '\\u0061ssistant');
  t.strictSame(ruled(escaped, { fillReasoning: true }, 'messages'), full);
});

test('settings of sampling are left out of text, unless a rule speaks of one', async (t) => {
  const flat = { temperature: 1, top_p: 1, top_k: 1, presence_penalty: 1, frequency_penalty: 1, x: 1 };
  for (const protocol of ['chat', 'completions', 'responses'] as const)
    t.strictSame(ruled(flat, { sampling: false }, protocol), { x: 1 }, protocol);
  t.strictSame(ruled({ temperature: 1, top_k: 2, x: 1 }, { sampling: false }, 'messages'), { x: 1 });
  t.strictSame(
    ruled(
      { generationConfig: { temperature: 1, top_p: 1, seed: 1 }, temperature: 5 },
      { sampling: false },
      'generateContent',
    ),
    { generationConfig: { seed: 1 }, temperature: 5 },
  );
  t.strictSame(ruled({ temperature: 1 }, { sampling: false }, 'audio'), { temperature: 1 });
  t.strictSame(ruled({ temperature: 0.2, top_p: 5 }, { sampling: false, set: { temperature: 1 } }, 'chat'), {
    temperature: 1,
  });
  t.strictSame(ruled({ temperature: 2 }, { sampling: false, keep: ['temperature'] }, 'chat'), {
    temperature: 2,
  });
});

test('a model that adapts its thinking is given no budget, and not told to think nothing', async (t) => {
  const thinking = 'adaptive' as const;
  const of = (value: unknown, protocol: Protocol = 'messages') =>
    ruled({ thinking: value, x: 1 }, { thinking }, protocol);
  t.strictSame(of({ type: 'enabled', budget_tokens: 5, display: 'omitted' }), {
    thinking: { display: 'omitted', type: 'adaptive' },
    x: 1,
  });
  t.strictSame(of({ type: 'disabled' }), { x: 1 });
  for (const same of [{ type: 'adaptive' }, { type: 'other' }, null, 'x'])
    t.strictSame(of(same), { thinking: same, x: 1 });
  t.strictSame(of({ type: 'disabled' }, 'chat'), { thinking: { type: 'disabled' }, x: 1 });
});

test('an effort becomes a switch where a vendor has one, and gives way to the switch itself', async (t) => {
  const of = (body: object, thinking: 'enable_thinking' | 'type', protocol: Protocol = 'chat') =>
    ruled(body, { thinking, efforts: { ultra: 'none' } }, protocol);
  t.strictSame(of({ reasoning_effort: 'none' }, 'enable_thinking'), { enable_thinking: false });
  t.strictSame(of({ reasoning_effort: 'low' }, 'enable_thinking'), { enable_thinking: true });
  t.strictSame(of({ reasoning_effort: 'ultra' }, 'enable_thinking'), { enable_thinking: false });
  t.strictSame(of({ enable_thinking: true, reasoning_effort: 'none' }, 'enable_thinking'), {
    enable_thinking: true,
  });
  t.strictSame(of({ reasoning_effort: 'none' }, 'type'), { thinking: { type: 'disabled' } });
  t.strictSame(of({ reasoning_effort: 'low' }, 'type'), { reasoning_effort: 'low' });
  t.strictSame(of({ reasoning_effort: null }, 'type'), { reasoning_effort: null });
  t.strictSame(of({ reasoning_effort: 'none' }, 'type', 'responses'), { reasoning_effort: 'none' });
});

test('a member that a rule decides is not made by an effort as well', async (t) => {
  const textOf = (settings: RuleSettings) =>
    Buffer.concat(pieces(Buffer.from('{"reasoning_effort":"none"}'), settings, 'chat', {})).toString();
  t.equal(
    textOf({ thinking: 'enable_thinking', set: { enable_thinking: true } }),
    '{"enable_thinking":true}',
  );
  t.equal(
    textOf({ thinking: 'type', set: { 'thinking.type': 'enabled' } }),
    '{"thinking":{"type":"enabled"}}',
  );
  t.equal(textOf({ thinking: 'type', drop: ['thinking'] }), '{}');
});

test('the model and the usage option are written in the same pass', async (t) => {
  const kind = { model: 'real', includeUsage: true };
  const body = '{ "model":"m","seed":1, "stream":true}';
  const of = (text: string) =>
    Buffer.concat(pieces(Buffer.from(text), { drop: ['seed'], set: { x: 1 } }, 'chat', kind)).toString();
  t.equal(of(body), '{"x":1,"stream_options":{"include_usage":true}, "model":"real","stream":true}');
  t.equal(
    of('{"stream_options":{"include_usage":false,"y":1}}'),
    '{"x":1,"model":"real","stream_options":{"include_usage":true,"y":1}}',
  );
  t.equal(
    of('{"x":1,"model":"real","stream_options":null}'),
    '{"x":1,"model":"real","stream_options":{"include_usage":true}}',
  );
});

test('a question for tokens is given no members, and images are asked for as often as they are charged', async (t) => {
  const settings = { set: { a: 1, b: 2 } };
  t.strictSame(ruled({ a: 0 }, settings, 'messages', { isCount: true }), { a: 1 });
  t.strictSame(ruled({ n: 4, x: 1 }, { drop: ['n', 'x'] }, 'images'), { n: 4 });
  t.strictSame(ruled({ n: 4, x: 1 }, { drop: ['n', 'x'] }, 'chat'), {});
});

test('a member of the objects in a list is left out of each, and all else keeps its bytes', async (t) => {
  const settings: RuleSettings = { drop: ['input[].meta', 'input[].content[].meta', 'input[].role.x'] };
  const textOf = (text: string) =>
    Buffer.concat(pieces(Buffer.from(text), settings, 'responses', {})).toString();
  t.equal(
    textOf(
      '{"meta":1, "input":[{"meta":{"a":[]},"id" : 1},"meta",[{"meta":1}],{"id":2,"meta":2}, {"x":{"meta":3}}]}',
    ),
    '{"meta":1, "input":[{"id" : 1},"meta",[{"meta":1}],{"id":2}, {"x":{"meta":3}}]}',
  );
  t.equal(
    textOf('{"input":[{"content":[{"meta":1,"text":"a"},{"text":"b"}],"role":{"x":1}}]}'),
    '{"input":[{"content":[{"text":"a"},{"text":"b"}],"role":{}}]}',
  );
  const literal = Buffer.from('{"include[]":1,"x":2}');
  t.equal(Buffer.concat(pieces(literal, { drop: ['include[]'] }, 'responses', {})).toString(), '{"x":2}');
  for (const text of ['{"input":"meta"}', '{"input":{"meta":1}}', '{"input":[]}', '{"input":null}', '{}'])
    t.equal(textOf(text), text);
  const withRoles = { ...settings, roles: { developer: 'system' } };
  t.strictSame(ruled({ input: [{ role: 'developer', meta: 1 }] }, withRoles, 'responses'), {
    input: [{ role: 'system' }],
  });
});

test('a body of any protocol without what the rules are about keeps its bytes', (t) => {
  const settings: RuleSettings = {
    drop: ['_a', '_b.c'],
    rename: { _c: '_d' },
    clamp: { _e: { min: 0 } },
    efforts: { xhigh: 'high' },
    roles: { developer: 'system' },
    sampling: false,
    thinking: 'type',
  };
  const known = fc.record(
    {
      messages: anyJson,
      input: anyJson,
      contents: anyJson,
      reasoning_effort: fc.constantFrom('high', null, 5),
      generationConfig: anyJson,
      output_config: anyJson,
      thinking: anyJson,
    },
    { requiredKeys: [] },
  );
  const anyBody = fc.tuple(fc.dictionary(anyText, anyJson, { maxKeys: 3 }), known);
  fc.assert(
    fc.property(anyBody, noise, fc.constantFrom(...protocols), ([others, members], whims, protocol) => {
      const body = Buffer.from(writeJson({ ...others, ...members }, whims));
      const sent = pieces(body, settings, protocol, {});
      assert.equal(sent.length, 1);
      assert.equal(sent[0], body);
    }),
    { numRuns: cases(1500) },
  );
  t.end();
});
