import { test } from 'tap';
import type {
  AssistantPart,
  MediaPart,
  ToolChoice,
  Turn,
  UserPart,
} from '../../../../src/conversation/request.js';
import { chatCodec } from '../../../../src/protocols/chat/index.js';
import { writeRequest } from '../../write-request.js';
import { encode, plain, refusal, target } from '../samples.js';

const text = (value: string): UserPart & AssistantPart => ({ kind: 'text', text: value });
const user = (...parts: UserPart[]): Turn => ({ role: 'user', parts });
const assistant = (...parts: AssistantPart[]): Turn => ({ role: 'assistant', parts });
const call = (id: string, more: object = {}): AssistantPart => ({
  kind: 'toolCall',
  id,
  name: 'f',
  input: '{"a":1}',
  custom: false,
  at: 'x',
  ...more,
});
const medium = (kind: MediaPart['kind'], mediaType: string, more: object = {}): MediaPart => ({
  kind,
  source: { kind: 'data', mediaType, data: 'AA==' },
  detail: null,
  name: null,
  at: 'messages[3].content[1]',
  ...more,
});
const result = (callId: string, content: UserPart[], isError = false): UserPart => ({
  kind: 'toolResult',
  callId,
  name: 'f',
  content: content as (MediaPart | { kind: 'text'; text: string })[],
  isError,
  at: 'x',
});
const messages = (...turns: Turn[]) => encode({ turns }).messages as unknown[];
const said = (...parts: UserPart[]) => messages(user(...parts));

test('top_k goes to servers that take it, as a whole number', async (t) => {
  const wants = { ...plain, topK: 40.4 };
  t.notMatch(writeRequest(chatCodec, wants, target), /top_k/);
  t.match(JSON.parse(writeRequest(chatCodec, wants, { ...target, topK: true })), { top_k: 40 });
});

test('settings go before the conversation, absent ones not at all', async (t) => {
  t.equal(
    writeRequest(chatCodec, plain, target),
    '{"model":"up","messages":[{"role":"user","content":"hi"}]}',
  );
  t.equal(
    writeRequest(
      chatCodec,
      {
        ...plain,
        stream: true,
        maxTokens: 9,
        temperature: 0,
        topP: 0.5,
        topK: 40,
        candidates: 2,
        stop: ['a', 'b'],
        seed: 0,
        presencePenalty: 0,
        frequencyPenalty: 1,
        logitBias: { 5: 1 },
        logprobs: 2,
        user: 'u',
        verbosity: 'low',
        reasoning: { effort: 'high', budget: 16_384, show: true, summary: null },
        format: { kind: 'object' },
      },
      { ...target, maxTokensField: 'max_tokens' },
    ),
    '{"model":"up","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"temperature":0,"top_p":0.5,' +
      '"n":2,"stop":["a","b"],"seed":0,"presence_penalty":0,"frequency_penalty":1,"logit_bias":{"5":1},' +
      '"logprobs":true,"top_logprobs":2,"user":"u","verbosity":"low","reasoning_effort":"high",' +
      '"response_format":{"type":"json_object"},"messages":[{"role":"system","content":"Answer with a single valid JSON object."},{"role":"user","content":"hi"}]}',
  );
  t.match(encode({ maxTokens: 3 }), { max_completion_tokens: 3 });
  t.strictSame(encode({ logprobs: 0 }).top_logprobs, undefined);
  t.strictSame(
    encode({ reasoning: { effort: null, budget: null, show: true, summary: null } }).reasoning_effort,
    undefined,
  );
});

test('a format of the answer has a name in this protocol', async (t) => {
  const format = { kind: 'schema' as const, name: null, description: null, schema: { type: 'object' } };
  t.strictSame(encode({ format: { ...format, strict: null } }).response_format, {
    type: 'json_schema',
    json_schema: { name: 'response', schema: { type: 'object' } },
  });
  const shut = { type: 'object', properties: {}, additionalProperties: false };
  const named = { ...format, name: 'n', description: 'd', schema: shut, strict: true };
  t.strictSame(encode({ format: named }).response_format, {
    type: 'json_schema',
    json_schema: { name: 'n', description: 'd', schema: shut, strict: true },
  });
});

test('tools of both kinds, and choices among them', async (t) => {
  const bare = { description: null, parameters: null, strict: null };
  const grammar = { type: 'grammar', syntax: 'lark', definition: 'x' };
  const tools = [
    { name: 'f', description: 'd', parameters: { type: 'object', properties: {} }, strict: false },
    { name: 'g', ...bare },
    { name: 'h', ...bare, custom: { format: grammar } },
    { name: 'i', ...bare, custom: { format: null } },
  ];
  const body = encode({ tools, toolChoice: { mode: 'required' }, parallelCalls: false });
  t.strictSame(body.tools, [
    {
      type: 'function',
      function: {
        name: 'f',
        description: 'd',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
    },
    { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } },
    {
      type: 'custom',
      custom: { name: 'h', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } },
    },
    { type: 'custom', custom: { name: 'i' } },
  ]);
  t.equal(body.tool_choice, 'required');
  t.equal(body.parallel_tool_calls, false);
  t.strictSame(encode({ tools, toolChoice: { mode: 'named', name: 'f' } }).tool_choice, {
    type: 'function',
    function: { name: 'f' },
  });
  t.strictSame(
    encode({ tools, toolChoice: { mode: 'allowed', names: ['g', 'h'], required: false } }).tool_choice,
    {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'auto',
        tools: [
          { type: 'function', function: { name: 'g' } },
          { type: 'custom', custom: { name: 'h' } },
        ],
      },
    },
  );
  const without = encode({ toolChoice: { mode: 'auto' }, parallelCalls: true });
  t.strictSame(Object.keys(without), ['model', 'messages'], 'there is nothing to choose without tools');
});

test('a choice of tools that are not there is left out', async (t) => {
  const tools = [{ name: 'f', description: null, parameters: null, strict: null }];
  const choice = (toolChoice: ToolChoice) => encode({ tools, toolChoice }).tool_choice;
  t.equal(choice({ mode: 'named', name: 'web_search' }), undefined);
  t.equal(choice({ mode: 'allowed', names: ['web_search'], required: true }), undefined);
  t.strictSame(choice({ mode: 'allowed', names: ['web_search', 'f'], required: true }), {
    type: 'allowed_tools',
    allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
  });
});

test('instructions between calls and their results come after the results', async (t) => {
  const system: Turn = { role: 'system', text: 's' };
  const roles = (...turns: Turn[]) =>
    (messages(...turns) as { role: string; content: string }[]).map(({ role, content }) =>
      role === 'user' ? content : role,
    );
  t.strictSame(roles(assistant(call('c1')), system, user(result('c1', []), text('x'))), [
    'assistant',
    'tool',
    'system',
    'x',
  ]);
  t.strictSame(
    roles(assistant(call('c1')), user(text('x')), system, user(result('c1', [])), assistant(text('a'))),
    ['assistant', 'tool', 'x', 'system', 'assistant'],
  );
  t.strictSame(
    roles(
      assistant(call('c1')),
      system,
      assistant(call('c2')),
      system,
      user(result('c1', []), result('c2', []), text('x')),
    ),
    ['assistant', 'tool', 'tool', 'system', 'system', 'x'],
  );
  t.strictSame(roles(assistant(call('c1')), system), ['assistant', 'tool', 'system']);
  t.strictSame(roles(assistant(text('a')), system, user(text('x'))), ['assistant', 'system', 'x']);
});

test('the instructions are one message at the start, later ones stay in place', async (t) => {
  t.strictSame(
    encode({ system: ['a', 'b'], turns: [user(text('x')), { role: 'system', text: 'c' }] }).messages,
    [
      { role: 'system', content: 'a\n\nb' },
      { role: 'user', content: 'x' },
      { role: 'system', content: 'c' },
    ],
  );
});

test('an assistant turn is one message', async (t) => {
  t.strictSame(
    messages(
      assistant(
        { kind: 'reasoning', text: 'hm', signature: null },
        text('a'),
        text('b'),
        { kind: 'refusal', text: 'no' },
        call('c1'),
        call('c2', { custom: true, name: 'g', input: 'free' }),
      ),
      user(result('c1', []), result('c2', [])),
    ).slice(0, 1),
    [
      {
        role: 'assistant',
        content: 'ab',
        refusal: 'no',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          { id: 'c2', type: 'custom', custom: { name: 'g', input: 'free' } },
        ],
      },
    ],
  );
  t.strictSame(messages(assistant({ kind: 'reasoning', text: 'hm', signature: 's' }), user(text('x'))), [
    { role: 'user', content: 'x' },
  ]);
  t.strictSame(messages(assistant(text('a')), assistant(text('b'))), [
    { role: 'assistant', content: 'a' },
    { role: 'assistant', content: 'b' },
  ]);
  t.match(
    messages(
      assistant(call('c1')),
      assistant(text('a'), call('c2')),
      user(result('c1', []), result('c2', [])),
    ),
    [
      { role: 'assistant', content: 'a', tool_calls: [{ id: 'c1' }, { id: 'c2' }] },
      { role: 'tool', tool_call_id: 'c1' },
      { role: 'tool', tool_call_id: 'c2' },
    ],
    'calls of turns in a row stand in one message',
  );
});

test('a tool call and its result, as the protocol spells them', async (t) => {
  t.equal(
    writeRequest(
      chatCodec,
      { ...plain, turns: [assistant(call('call_1')), user(result('call_1', [text('42')]))] },
      target,
    ),
    '{"model":"up","messages":[' +
      '{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}]},' +
      '{"role":"tool","tool_call_id":"call_1","content":"42"}]}',
  );
});

test('a call and its result have the same id where the client has a longer one than chat takes', async (t) => {
  const id = 'chatcmpl-tool-0123456789abcdef0123456789abcdef';
  const [{ tool_calls: calls }, { tool_call_id: answered }, { content }] = messages(
    assistant(call(id)),
    user(result(id, [medium('image', 'image/png')])),
  ) as [{ tool_calls: { id: string }[] }, { tool_call_id: string }, { content: { text: string }[] }];
  t.match(answered, /^call_[\w-]{32}$/);
  t.equal(calls[0]?.id, answered);
  t.equal(content[0]?.text, `Attachments of the result of tool call ${answered}:`);
});

test('results go before what the user says, in whichever turn of a row they stand', async (t) => {
  t.strictSame(
    messages(
      assistant(call('c1'), call('c2')),
      user(result('c1', [text('a'), text('b')]), text('x')),
      user(result('c2', [text('bad')], true)),
    ).slice(1),
    [
      { role: 'tool', tool_call_id: 'c1', content: 'a\nb' },
      { role: 'tool', tool_call_id: 'c2', content: 'Error: bad' },
      { role: 'user', content: 'x' },
    ],
  );
});

test('media of a result move to the user message after it', async (t) => {
  const shown = user(result('c1', [medium('image', 'image/png')]), text('x'));
  t.strictSame(messages(assistant(call('c1')), shown).slice(1), [
    { role: 'tool', tool_call_id: 'c1', content: 'See the attachments in the next user message.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Attachments of the result of tool call c1:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        { type: 'text', text: 'x' },
      ],
    },
  ]);
});

test('documents that are texts are told as these', async (t) => {
  const data = (content: string, mediaType: string) => ({
    source: { kind: 'data', mediaType, data: Buffer.from(content).toString('base64') },
  });
  t.strictSame(
    said(
      medium('document', '', { ...data('a,ü', 'text/csv'), name: 'a.csv' }),
      medium('document', '', data('# a', 'text/markdown')),
      medium('document', '', data('{}', 'application/json')),
      medium('document', '', { ...data('b', 'text/plain'), name: '' }),
    ),
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a.csv\n\na,ü' },
          { type: 'text', text: '# a' },
          { type: 'text', text: '{}' },
          { type: 'text', text: 'b' },
        ],
      },
    ],
  );
});

test('what a user shows', async (t) => {
  const url = { kind: 'url', url: 'https://h/x', mediaType: null };
  t.strictSame(
    said(
      text('look'),
      medium('image', 'image/png', { detail: 'low' }),
      medium('image', '', { source: url }),
      medium('document', 'application/pdf'),
      medium('document', 'application/msword', { name: 'a.doc' }),
      medium('audio', 'audio/mpeg'),
      medium('audio', 'audio/x-wav'),
    ),
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
          { type: 'image_url', image_url: { url: 'https://h/x' } },
          { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,AA==' } },
          {
            type: 'file',
            file: { filename: 'a.doc', file_data: 'data:application/msword;base64,AA==' },
          },
          { type: 'input_audio', input_audio: { data: 'AA==', format: 'mp3' } },
          { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
        ],
      },
    ],
  );
});

test('what the protocol cannot say is refused by the name that the client knows', async (t) => {
  const url = { kind: 'url', url: 'https://h/x', mediaType: null };
  const cases: [() => unknown, string][] = [
    [() => encode({ hostedTools: [{ type: 'bash', at: 'tools[2]' }] }), 'tools[2]'],
    [() => said(medium('video', 'video/mp4')), 'messages[3].content[1]'],
    [() => said(medium('audio', 'audio/ogg')), 'messages[3].content[1]'],
    [() => said(medium('audio', '', { source: url })), 'messages[3].content[1]'],
    [() => said(medium('document', '', { source: url })), 'messages[3].content[1]'],
    [() => messages(assistant(medium('image', 'image/png'))), 'messages[3].content[1]'],
  ];
  for (const [encoding, param] of cases)
    t.strictSame(refusal(encoding), { kind: 'unsupported_parameter', param }, param);
  const dropped = encode({ hostedTools: [{ type: 'bash', at: 'tools[2]' }] }, { hostedTools: 'drop' });
  t.strictSame(Object.keys(dropped), ['model', 'messages']);
});

test('the next turn of a conversation begins with the bytes of this one', async (t) => {
  const turns = [
    user(text('q'), medium('image', 'image/png')),
    assistant({ kind: 'reasoning', text: 'hm', signature: null }, text('a'), call('c1'), call('c2')),
    user(result('c1', [text('1')]), result('c2', [medium('image', 'image/png')], true), text('go on')),
    assistant(text('b')),
    { role: 'system' as const, text: 's' },
    user(text('more')),
  ];
  const body = (count: number) => writeRequest(chatCodec, { ...plain, turns: turns.slice(0, count) }, target);
  // The calls are not a request's last words.
  const counts = [1, 3, 4, 5, 6];
  for (const [index, count] of counts.slice(0, -1).entries())
    t.ok(body(counts[index + 1] as number).startsWith(body(count).slice(0, -2)), `${count} turns`);
});

test('the id of a user is as long as the protocol takes it', async (t) => {
  t.equal(encode({ user: 'u'.repeat(64) }).user, 'u'.repeat(64));
  t.match(encode({ user: 'u'.repeat(65) }).user, /^[\w-]{32}$/);
});
