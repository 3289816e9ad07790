import assert from 'node:assert/strict';
import { test } from 'tap';
import type { MediaPart, ToolResultPart, Turn } from '../../../../src/conversation/request.js';
import { accountOf, tagSignature } from '../../../../src/conversation/signature.js';
import { responsesCodec } from '../../../../src/protocols/responses/index.js';
import { openReasoning } from '../../../../src/protocols/responses/reasoning.js';
import { listAt } from '../../../support/json.js';
import { refusalOf } from '../../../support/refusal.js';
import { cases, fc } from '../../../support/seed.js';
import { writeRequest } from '../../write-request.js';
import { agentBody, everything } from '../bodies.js';
import { decode, encode, plain, target } from '../conversation.js';
import { turnsArbitrary } from '../turns.js';

const text = (words: string) => ({ kind: 'text' as const, text: words });
const user: Turn = { role: 'user', parts: [text('hi')] };
const inputOf = (...turns: Turn[]) => encode({ turns: [...turns, user] }).input as unknown[];
const call = (id: string, custom = false) => ({
  kind: 'toolCall' as const,
  id,
  name: 'f',
  input: '{"a":1}',
  custom,
  at: 'messages[1]',
});
const result = (callId: string, more: Partial<ToolResultPart> = {}): ToolResultPart => ({
  kind: 'toolResult',
  callId,
  name: 'f',
  content: [text('42')],
  isError: false,
  at: 'messages[2]',
  ...more,
});
const media = (kind: MediaPart['kind'], more: Partial<MediaPart> = {}): MediaPart => ({
  kind,
  source: { kind: 'data', mediaType: 'image/png', data: 'AAAA' },
  detail: null,
  name: null,
  at: 'messages[0].content[1]',
  ...more,
});

test('a plain request has its model, its input and that nothing is to be stored', async (t) => {
  t.equal(
    writeRequest(responsesCodec, plain, target),
    '{"model":"up","store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}',
  );
});

test('every setting', async (t) => {
  const schema = { type: 'object', properties: {} };
  const shut = { ...schema, additionalProperties: false };
  const body = encode({
    stream: true,
    system: ['a', 'b'],
    maxTokens: 100,
    temperature: 0.5,
    topP: 0.9,
    user: 'u',
    verbosity: 'low',
    format: { kind: 'schema', name: null, description: 'd', schema, strict: true },
    reasoning: { effort: 'low', budget: null, show: true, summary: null },
    logprobs: 3,
    parallelCalls: false,
    toolChoice: { mode: 'allowed', names: ['f', 'g'], required: true },
    tools: [
      { name: 'f', description: 'd', parameters: null, strict: null },
      {
        name: 'g',
        description: null,
        parameters: null,
        strict: null,
        custom: { format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
      },
      { name: 'h', description: null, parameters: shut, strict: true },
    ],
    topK: 5,
    seed: 1,
    presencePenalty: 1,
    frequencyPenalty: 1,
    logitBias: {},
  });
  t.same(body, {
    model: 'up',
    stream: true,
    store: false,
    max_output_tokens: 100,
    temperature: 0.5,
    top_p: 0.9,
    safety_identifier: 'u',
    text: {
      format: { type: 'json_schema', name: 'response', description: 'd', schema: shut, strict: true },
      verbosity: 'low',
    },
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
    top_logprobs: 3,
    instructions: 'a\n\nb',
    tools: [
      { type: 'function', name: 'f', description: 'd', parameters: schema, strict: false },
      { type: 'custom', name: 'g', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
      { type: 'function', name: 'h', parameters: shut, strict: true },
    ],
    tool_choice: {
      type: 'allowed_tools',
      mode: 'required',
      tools: [
        { type: 'function', name: 'f' },
        { type: 'custom', name: 'g' },
      ],
    },
    parallel_tool_calls: false,
    input: body.input,
  });
  t.equal(Object.keys(body).at(-1), 'input', 'what grows stands last');
});

test('settings that the protocol takes in another way', async (t) => {
  t.equal(encode({ maxTokens: 1 }).max_output_tokens, 16);
  t.same(encode({ format: { kind: 'object' } }).text, { format: { type: 'json_object' } });
  const reasoning = { effort: 'none', budget: 0, show: false, summary: null } as const;
  t.match(encode({ reasoning }), { reasoning: { effort: 'none' }, include: undefined });
  const shown = { effort: null, budget: null, show: true, summary: 'detailed' } as const;
  t.match(encode({ reasoning: shown }), { reasoning: { summary: 'detailed' } });
  t.notOk('tool_choice' in encode({ toolChoice: { mode: 'auto' }, parallelCalls: true }), 'without tools');
});

test('the id of a user is as long as the protocol takes it', async (t) => {
  t.equal(encode({ user: 'u'.repeat(64) }).safety_identifier, 'u'.repeat(64));
  const { safety_identifier } = encode({ user: 'u'.repeat(65) });
  t.match(safety_identifier, /^[\w-]{1,64}$/);
  t.equal(encode({ user: 'u'.repeat(65) }).safety_identifier, safety_identifier);
});

test('a round of a tool call', async (t) => {
  const input = inputOf(
    user,
    { role: 'assistant', parts: [text('Let me see.'), call('call_1'), call('call_2', true), text('So.')] },
    { role: 'user', parts: [result('call_1'), result('call_2'), text('And?')] },
  );
  t.same(input.slice(1, -1), [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Let me see.' }] },
    { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"a":1}' },
    { type: 'custom_tool_call', call_id: 'call_2', name: 'f', input: '{"a":1}' },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'So.' }] },
    { type: 'function_call_output', call_id: 'call_1', output: '42' },
    { type: 'custom_tool_call_output', call_id: 'call_2', output: '42' },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And?' }] },
  ]);
});

test('an id that the protocol would refuse is another, the same for call and output', async (t) => {
  const [called, output] = inputOf(
    { role: 'assistant', parts: [call('functions.f:0')] },
    { role: 'user', parts: [result('functions.f:0')] },
  ) as { call_id: string }[];
  t.match(called?.call_id, /^[A-Za-z0-9_-]{1,64}$/);
  t.equal(called?.call_id, output?.call_id);
});

test('outputs with more than a text, and failures', async (t) => {
  const outputOf = (more: Partial<ToolResultPart>) =>
    (
      inputOf({ role: 'assistant', parts: [call('c')] }, { role: 'user', parts: [result('c', more)] })[1] as {
        output: unknown;
      }
    ).output;
  t.equal(outputOf({ content: [] }), '');
  t.equal(outputOf({ isError: true }), 'Error: 42');
  t.same(outputOf({ content: [text('a'), media('image')] }), [
    { type: 'input_text', text: 'a' },
    { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' },
  ]);
});

test('images and documents', async (t) => {
  const pdf = { kind: 'data', mediaType: 'application/pdf', data: 'BBBB' } as const;
  const url = { kind: 'url', url: 'https://example.com/x', mediaType: null } as const;
  const [message] = inputOf({
    role: 'user',
    parts: [
      media('image', { source: url, detail: 'low' }),
      media('document', { source: pdf }),
      media('document', { source: pdf, name: 'b.pdf' }),
      media('document', { source: url }),
    ],
  });
  t.same(message, {
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_image', image_url: url.url, detail: 'low' },
      { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,BBBB' },
      { type: 'input_file', filename: 'b.pdf', file_data: 'data:application/pdf;base64,BBBB' },
      { type: 'input_file', file_url: url.url },
    ],
  });
});

test('later instructions stay in their place, and refusals are refusals', async (t) => {
  t.same(
    inputOf(
      user,
      { role: 'system', text: 's' },
      { role: 'assistant', parts: [{ kind: 'refusal', text: 'no' }] },
    ).slice(1, 3),
    [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 's' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    ],
  );
});

test('reasoning goes back to the vendor that wrote it, and to no other', async (t) => {
  const seal = (protocol: 'responses' | 'messages', value: string) =>
    tagSignature({ protocol, model: 'up', value, redacted: true });
  const reasoning = (signature: string | null) => ({ kind: 'reasoning' as const, text: 'hm', signature });
  const input = inputOf({
    role: 'assistant',
    parts: [
      reasoning(seal('responses', 'rs_abc:gAAA')),
      reasoning(seal('messages', 'sig')),
      reasoning('not ours'),
      reasoning(null),
      { ...reasoning(seal('responses', ':gAAA')), text: '' },
      text('c'),
    ],
  }) as { id?: string }[];
  t.equal(input.length, 4);
  t.same(input[0], {
    type: 'reasoning',
    id: 'rs_abc',
    summary: [{ type: 'summary_text', text: 'hm' }],
    encrypted_content: 'gAAA',
  });
  t.same(input[1], { type: 'reasoning', summary: [], encrypted_content: 'gAAA' }, 'no id is made up');
});

test('reasoning that a client repeats for a later call is sent once, since an item that comes twice is refused', async (t) => {
  const value = 'rs_abc:gAAA';
  const signature = tagSignature({ protocol: 'responses', model: 'up', value, redacted: true });
  const calling = (id: string): Turn[] => [
    { role: 'assistant', parts: [{ kind: 'reasoning', text: '', signature }, call(id)] },
    { role: 'user', parts: [result(id)] },
  ];
  const types = listAt(inputOf(...calling('call_1'), ...calling('call_2'))).map(({ type }) => type);
  t.same(types.slice(0, 5), [
    'reasoning',
    'function_call',
    'function_call_output',
    'function_call',
    'function_call_output',
  ]);
});

test('encrypted reasoning is requested with an effort, and unasked of models that reason so, for the calls of tools', async (t) => {
  const unasked = { ...target, encryptedReasoning: true };
  const tools = [{ name: 'f', description: null, parameters: null, strict: null }];
  const reasoning = (effort: string) => ({ effort, budget: null, show: false, summary: null });
  const include = ['reasoning.encrypted_content'];
  t.same(encode({ reasoning: reasoning('low') }).include, include);
  t.equal(encode({ tools }).include, undefined);
  t.same(encode({ tools }, unasked).include, include);
  t.equal(encode({}, unasked).include, undefined, 'without tools');
  t.equal(encode({ tools, reasoning: reasoning('none') }, unasked).include, undefined, 'switched off');
});

test('what an account has encrypted does not go to another', async (t) => {
  const sealed = (model: string) =>
    tagSignature({ protocol: 'responses', model, value: 'rs_1:gAAA', redacted: true });
  const sent = (signature: string) => {
    const parts = [{ kind: 'reasoning', text: '', signature }, text('c')] as const;
    const { input } = encode(
      { turns: [user, { role: 'assistant', parts }, user] },
      { ...target, upstream: 'one' },
    );
    return listAt(input).some(({ type }) => type === 'reasoning');
  };
  t.ok(sent(sealed(accountOf({ model: 'up', upstream: 'one' }))));
  t.ok(sent(sealed('')), 'a client of the protocol has it from the upstream itself');
  t.ok(sent(sealed('up')), 'an earlier release named the model alone');
  t.notOk(sent(sealed('other')));
  t.notOk(sent(sealed(accountOf({ model: 'up', upstream: 'two' }))));
  t.notOk(sent(sealed(accountOf({ model: 'other', upstream: 'one' }))));
});

test('what the protocol cannot say is refused by the client’s name for it', async (t) => {
  const part = (value: MediaPart) => ({ turns: [{ role: 'user', parts: [value] } as Turn] });
  const cases: [Parameters<typeof encode>[0], string][] = [
    [{ candidates: 2 }, 'n'],
    [{ logitBias: { 5: 1 } }, 'logit_bias'],
    [{ hostedTools: [{ type: 'web_search', at: 'tools[2]' }] }, 'tools[2]'],
    [part(media('audio')), 'messages[0].content[1]'],
    [part(media('video')), 'messages[0].content[1]'],
    [{ turns: [{ role: 'assistant', parts: [media('image')] }, user] }, 'messages[0].content[1]'],
  ];
  for (const [members, param] of cases)
    t.match(
      refusalOf(() => encode(members)),
      { kind: 'unsupported_parameter', param, status: 400 },
      param,
    );
  const drop = { ...target, hostedTools: 'drop' } as const;
  t.notOk('tools' in encode({ hostedTools: [{ type: 'web_search', at: 'tools[2]' }] }, drop));
});

test('an answer that is begun in the request is asked for, and stop sequences are not sent', async (t) => {
  const { input, ...settings } = encode({
    stop: ['x'],
    turns: [user, { role: 'assistant', parts: [text('Once')] }],
  });
  t.match(input, [{}, { role: 'assistant' }, { role: 'user', content: [{ text: /^Go on/ }] }]);
  t.notOk('stop' in settings);
});

test('what is encoded decodes to the same conversation', async (t) => {
  fc.assert(
    fc.property(turnsArbitrary, (turns) => {
      const all = [...turns, user];
      const { input } = encode({ turns: all });
      assert.deepEqual(comparable(decode({ input }).turns), comparable(all));
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

test('a body that is decoded and encoded says the same', async (t) => {
  const { tools: _tools, ...agent } = agentBody;
  const bodies = [
    { ...agent, tools: agentBody.tools.slice(0, 12) },
    {
      input: [{ role: 'user', content: 'x' }],
      max_output_tokens: 20,
      temperature: 1,
      top_p: 1,
      text: everything.text,
      reasoning: { effort: 'max' },
      include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
      top_logprobs: 2,
      tools: everything.tools.slice(0, 2),
      tool_choice: { type: 'custom', name: 'g' },
      parallel_tool_calls: false,
      safety_identifier: 'u',
    },
  ];
  for (const body of bodies) {
    const { echo: _echo, ...request } = decode(body, true);
    const lost = body.input.some((item) => 'phase' in item) ? ['phase'] : [];
    if ('client_metadata' in body) lost.push('client_metadata');
    t.strictSame(request.leftOut, lost);
    // Leading developer messages and `strict` come back in the form that leaves nothing open.
    const expected = {
      ...request,
      stored: false,
      leftOut: [],
      system: request.system.length === 0 ? [] : [request.system.join('\n\n')],
      tools: request.tools.map((tool) => (tool.custom ? tool : { ...tool, strict: tool.strict ?? false })),
    };
    const { echo: _again, ...decoded } = decode(encode({ ...request, echo: null }), true);
    t.same(comparable(decoded), comparable(expected));
  }
});

test('the body of the next turn begins with the bytes of this one', async (t) => {
  fc.assert(
    fc.property(turnsArbitrary, turnsArbitrary, (turns, more) => {
      const first = writeRequest(responsesCodec, { ...plain, turns: [...turns, user] }, target);
      const next = writeRequest(responsesCodec, { ...plain, turns: [...turns, user, ...more, user] }, target);
      assert.ok(next.startsWith(first.slice(0, -2)));
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

/** Turns without the paths that differ by protocol, and with what their signatures hold in place of these. */
function comparable(value: object): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member: unknown) => {
      if (key === 'signature') return openReasoning(member as string | null, null);
      return key === 'at' ? undefined : member;
    }),
  );
}
