import { test } from 'tap';
import { tagUnsigned } from '../../../../src/conversation/unsigned-reasoning.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { decode, decodeMessages, refusal } from '../samples.js';

const text = (value: string) => ({ kind: 'text', text: value });
const userParts = (...content: readonly JsonObject[]) => {
  const [turn] = decodeMessages({ role: 'user', content }).turns;
  return turn?.role === 'user' ? turn.parts : null;
};
const image = (url: string, more: JsonObject = {}) => ({ type: 'image_url', image_url: { url, ...more } });

test('system and developer messages instruct: at the start apart, later in place', async (t) => {
  const request = decodeMessages(
    { role: 'system', content: 'a' },
    {
      role: 'developer',
      content: [
        { type: 'text', text: 'b' },
        { type: 'text', text: '' },
      ],
    },
    { role: 'user', content: 'hi', name: 'ann' },
    {
      role: 'system',
      content: [
        { type: 'text', text: 'c' },
        { type: 'text', text: 'd' },
      ],
    },
    { role: 'developer', content: '' },
  );
  t.strictSame(request.system, ['a', 'b']);
  t.strictSame(request.turns, [
    { role: 'user', parts: [text('hi')] },
    { role: 'system', text: 'c\n\nd' },
  ]);
  t.strictSame(
    refusal(() => decodeMessages({ role: 'system', content: [image('https://x')] })),
    {
      kind: 'unsupported_parameter',
      param: 'messages[0].content[0]',
    },
  );
});

test('the texts, refusals and calls of an assistant are one turn', async (t) => {
  const { turns } = decodeMessages(
    { role: 'user', content: 'q' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'x' },
        { type: 'refusal', refusal: 'no' },
      ],
      refusal: 'never',
      reasoning_content: 'hm',
      name: 'bot',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'f', arguments: '' } },
        { id: 'c2', type: 'custom', custom: { name: 'g', input: 'free' } },
        { function: { name: 'h', arguments: '{"a":1}' } },
      ],
    },
    { role: 'assistant', content: '', tool_calls: [] },
    { role: 'assistant', content: null, tool_calls: null, function_call: null },
  );
  t.strictSame(turns.slice(1), [
    {
      role: 'assistant',
      parts: [
        { kind: 'reasoning', text: 'hm', signature: tagUnsigned('reasoning_content', '') },
        text('x'),
        { kind: 'refusal', text: 'no' },
        { kind: 'refusal', text: 'never' },
        {
          kind: 'toolCall',
          id: 'c1',
          name: 'f',
          input: '{}',
          custom: false,
          at: 'messages[1].tool_calls[0]',
        },
        {
          kind: 'toolCall',
          id: 'c2',
          name: 'g',
          input: 'free',
          custom: true,
          at: 'messages[1].tool_calls[1]',
        },
        {
          kind: 'toolCall',
          id: 'call_1_2',
          name: 'h',
          input: '{"a":1}',
          custom: false,
          at: 'messages[1].tool_calls[2]',
        },
      ],
    },
  ]);
});

test('tool messages in a row are one user turn, and what the user says is another', async (t) => {
  const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });
  const { turns } = decodeMessages(
    { role: 'assistant', tool_calls: [call('c1', 'f'), call('c2', 'g')] },
    { role: 'tool', tool_call_id: 'c2', content: 'two' },
    { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'one' }, image('https://x/y')] },
    { role: 'user', content: 'and?' },
    { role: 'tool', tool_call_id: 'c9', content: null },
  );
  const result = (callId: string, name: string, index: number, ...content: unknown[]) => ({
    kind: 'toolResult',
    callId,
    name,
    content,
    isError: false,
    at: `messages[${index}]`,
  });
  const moved = {
    kind: 'image',
    source: { kind: 'url', url: 'https://x/y', mediaType: null },
    detail: null,
    name: null,
    at: 'messages[2].content[1]',
  };
  t.strictSame(turns.slice(1), [
    {
      role: 'user',
      parts: [result('c2', 'g', 1, text('two')), result('c1', 'f', 2, text('one'), moved)],
    },
    { role: 'user', parts: [text('and?')] },
    { role: 'user', parts: [result('c9', '', 4)] },
  ]);
});

test('a result without an id is never that of an earlier message, nor one of a function_call', async (t) => {
  const call = (name: string) => ({ id: '', type: 'function', function: { name, arguments: '{}' } });
  const { turns } = decodeMessages(
    { role: 'user', content: 'a' },
    { role: 'assistant', content: null, tool_calls: [call('f')] },
    { role: 'user', content: 'b' },
    { role: 'assistant', content: null, tool_calls: [call('g')] },
    { role: 'tool', tool_call_id: '', content: '1' },
    { role: 'assistant', content: null, tool_calls: [call('f')] },
    { role: 'user', content: 'c' },
    { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
    { role: 'function', name: 'f', content: '2' },
  );
  t.match(turns[4], { parts: [{ callId: 'call_3_0', name: 'g' }] });
  t.match(turns[8], { parts: [{ callId: 'function_call_7', name: 'f' }] });
});

test('results without ids are those of calls with ids where both are as many, and are refused elsewhere', async (t) => {
  const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });
  const calls = { role: 'assistant', content: null, tool_calls: [call('a', 'f'), call('b', 'g')] };
  const result = (content: string, more: JsonObject = {}) => ({ role: 'tool', content, ...more });
  const user = { role: 'user', content: 'a' };
  const cases: [JsonObject[], string[]][] = [
    [
      [result('1'), result('2')],
      ['a', 'b'],
    ],
    [
      [result('1', { tool_call_id: '' }), result('2', { tool_call_id: null })],
      ['a', 'b'],
    ],
    [
      [result('1', { name: 'g' }), result('2', { name: 'f' })],
      ['b', 'a'],
    ],
    [
      [result('1'), result('2', { tool_call_id: 'a' })],
      ['b', 'a'],
    ],
    [
      [result('1', { tool_call_id: 'b' }), result('2')],
      ['b', 'a'],
    ],
    [
      [result('1'), result('2', { name: 'f' })],
      ['b', 'a'],
    ],
    [
      [result('1', { tool_call_id: '', name: 'else' }), result('2')],
      ['', 'a'],
    ],
    [[result('1', { tool_call_id: '' })], ['']],
  ];
  for (const [results, ids] of cases) {
    const { turns } = decodeMessages(user, calls, ...results);
    t.match(turns[2], { parts: ids.map((callId) => ({ callId })) }, JSON.stringify(results));
  }
  const apart = decodeMessages(
    user,
    calls,
    result('1'),
    user,
    { role: 'assistant', content: 'b' },
    result('2'),
  );
  t.match(apart.turns[2], { parts: [{ callId: 'a' }] });
  t.match(apart.turns[5], { parts: [{ callId: 'b' }] }, 'up to the next message with calls');
  const unclear: [JsonObject[], number][] = [
    [[result('1')], 2],
    [[result('1'), result('2'), result('3')], 2],
    [[result('1', { tool_call_id: 'a' }), result('2'), result('3')], 3],
    [[result('1'), user, calls, result('2')], 2],
    [[result('1', { name: 'else' }), result('2')], 2],
    [[result('1', { name: 'f' }), result('2', { name: 'f' })], 3],
  ];
  for (const [results, at] of unclear)
    t.strictSame(
      refusal(() => decodeMessages(user, calls, ...results)),
      { kind: 'missing_parameter', param: `messages[${at}].tool_call_id` },
      JSON.stringify(results),
    );
});

test('results without ids are those of the calls without ids, in their order', async (t) => {
  const calls = ['f', 'g', 'h'].map((name, index) => ({
    id: index === 1 ? 'own' : '',
    type: 'function',
    function: { name, arguments: '{}' },
  }));
  const { turns } = decodeMessages(
    { role: 'user', content: 'a' },
    { role: 'assistant', content: null, tool_calls: calls },
    { role: 'tool', tool_call_id: '', content: '1' },
    { role: 'tool', tool_call_id: 'own', content: '2' },
    { role: 'tool', tool_call_id: '', content: '3' },
    { role: 'tool', tool_call_id: '', content: '4' },
  );
  t.match(turns[1], { parts: [{ id: 'call_1_0' }, { id: 'own' }, { id: 'call_1_2' }] });
  t.match(turns[2], {
    parts: [
      { callId: 'call_1_0', name: 'f' },
      { callId: 'own', name: 'g' },
      { callId: 'call_1_2', name: 'h' },
      { callId: '', name: '' },
    ],
  });
});

test('the name of a result without an id is no matter where the calls have no ids and none has the name', async (t) => {
  const call = (name: string) => ({ id: '', type: 'function', function: { name, arguments: '{}' } });
  const result = (name: string | null) => ({ role: 'tool', name, content: 'x' });
  const { turns } = decodeMessages(
    { role: 'user', content: 'a' },
    { role: 'assistant', content: null, tool_calls: [call('f'), call('g'), call('h')] },
    result('else'),
    result('f'),
    result(null),
  );
  t.match(turns[2], { parts: [{ callId: 'call_1_1' }, { callId: 'call_1_0' }, { callId: 'call_1_2' }] });
});

test('functions and function_call are tools by their older names', async (t) => {
  const request = decode({
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: ' ' } },
      { role: 'function', name: 'f', content: '1' },
      { role: 'assistant', content: 'one' },
    ],
    functions: [{ name: 'f', parameters: { type: 'object' } }],
    function_call: { name: 'f' },
  });
  t.strictSame(request.tools, [
    { name: 'f', description: null, parameters: { type: 'object' }, strict: null },
  ]);
  t.strictSame(request.toolChoice, { mode: 'named', name: 'f' });
  const [, call, result] = request.turns;
  t.match(call, { parts: [{ kind: 'toolCall', id: 'function_call_1', name: 'f', input: '{}' }] });
  t.match(result, { role: 'user', parts: [{ kind: 'toolResult', callId: 'function_call_1', name: 'f' }] });
  t.strictSame(decode({ function_call: 'none' }).toolChoice, { mode: 'none' });
  t.strictSame(decode({ function_call: 'auto', tool_choice: 'required' }).toolChoice, { mode: 'required' });
});

test('each result of a function is that of one call', async (t) => {
  const called = (name: string) => ({ role: 'assistant', content: null, function_call: { name } });
  const result = (name: string) => ({ role: 'function', name, content: name });
  const idsOf = (...messages: JsonObject[]) =>
    decodeMessages(...messages).turns.flatMap((turn) =>
      turn.role === 'user'
        ? turn.parts.map((part) => (part.kind === 'toolResult' ? `${part.name} ${part.callId}` : ''))
        : [],
    );
  t.strictSame(idsOf(called('f'), called('g'), called('f'), result('g'), result('f'), result('f')), [
    'g function_call_1',
    'f function_call_0',
    'f function_call_2',
  ]);
  t.strictSame(idsOf(called('f'), result('other')), ['other function_call_0']);
  t.strictSame(idsOf(called('f'), result('f'), called('f'), result('f')), [
    'f function_call_0',
    'f function_call_2',
  ]);
  t.strictSame(
    refusal(() => idsOf(called('f'), result('f'), result('f'))),
    { kind: 'invalid_value', param: 'messages[2]' },
    'a second result of one call',
  );
});

test('a user may show images, documents and sounds', async (t) => {
  const medium = (kind: string, source: unknown, more: JsonObject = {}) => ({
    kind,
    source,
    detail: null,
    name: null,
    at: 'messages[0].content[0]',
    ...more,
  });
  const data = (mediaType: string, bytes = 'AA==') => ({ kind: 'data', mediaType, data: bytes });
  const cases: [JsonObject, unknown][] = [
    [
      image('https://h/i.png', { detail: 'low' }),
      medium('image', { kind: 'url', url: 'https://h/i.png', mediaType: null }, { detail: 'low' }),
    ],
    [image('data:image/PNG;base64,AA=='), medium('image', data('image/png'))],
    [image('DATA:image/jpg;charset=x;BASE64,AA=='), medium('image', data('image/jpeg'))],
    [image('data:;base64,AA=='), medium('image', data('application/octet-stream'))],
    [
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
      medium('audio', data('audio/wav')),
    ],
    [
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'mp3' } },
      medium('audio', data('audio/mpeg')),
    ],
    [
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
      medium('document', data('application/pdf'), { name: 'a.pdf' }),
    ],
    [
      { type: 'file', file: { filename: 'A.PDF', file_data: 'AA==' } },
      medium('document', data('application/pdf'), { name: 'A.PDF' }),
    ],
    [{ type: 'file', file: { file_data: 'AA==' } }, medium('document', data('application/octet-stream'))],
    [
      { type: 'file', file: { filename: 'a.pdf', file_data: 'https://h/a.pdf' } },
      medium('document', { kind: 'url', url: 'https://h/a.pdf', mediaType: null }, { name: 'a.pdf' }),
    ],
    [
      { type: 'file', file: { filename: 'a.png', file_data: 'data:image/png;base64,AA==' } },
      medium('image', data('image/png')),
    ],
  ];
  for (const [part, expected] of cases) t.strictSame(userParts(part), [expected], JSON.stringify(part));
});

test('content that no other protocol can take is refused by its path', async (t) => {
  const at = 'messages[0].content[0]';
  const cases: [JsonObject, string, string][] = [
    [image('data:image/png,AA'), 'invalid_value', `${at}.image_url.url`],
    [image('data:image/png;base64,'), 'invalid_value', `${at}.image_url.url`],
    [image('data:image/png;base64'), 'invalid_value', `${at}.image_url.url`],
    [image('gs://bucket/i.png'), 'invalid_value', `${at}.image_url.url`],
    [{ type: 'image_url' }, 'missing_parameter', `${at}.image_url`],
    [{ type: 'input_audio', input_audio: {} }, 'missing_parameter', `${at}.input_audio.data`],
    [{ type: 'file', file: { file_id: 'f' } }, 'unsupported_parameter', `${at}.file.file_id`],
    [{ type: 'file', file: { file_data: 'data:x' } }, 'invalid_value', `${at}.file.file_data`],
    [{ type: 'file', file: { file_data: 'gs://bucket/a.pdf' } }, 'invalid_value', `${at}.file.file_data`],
    [{ type: 'file', file: {} }, 'invalid_value', `${at}.file.file_data`],
    [{ type: 'video_url', video_url: {} }, 'unsupported_parameter', at],
    [{ type: 'text' }, 'missing_parameter', `${at}.text`],
  ];
  for (const [part, kind, param] of cases)
    t.strictSame(
      refusal(() => userParts(part)),
      { kind, param },
      JSON.stringify(part),
    );
});

test('messages of unknown or broken forms are refused by their path', async (t) => {
  const assistant = (more: JsonObject) => ({ role: 'assistant', ...more });
  const call = (more: JsonObject) => assistant({ tool_calls: [more] });
  const cases: [JsonObject, string, string][] = [
    [{ role: 'critic', content: 'x' }, 'unsupported_parameter', 'messages[0]'],
    [{ role: 'user', content: 7 }, 'invalid_request', 'messages[0].content'],
    [{ role: 'user', content: ['x'] }, 'invalid_request', 'messages[0].content[0]'],
    [{ role: 'tool', content: 'x' }, 'missing_parameter', 'messages[0].tool_call_id'],
    [assistant({ audio: { id: 'a' } }), 'unsupported_parameter', 'messages[0].audio'],
    [assistant({ content: [image('https://x')] }), 'unsupported_parameter', 'messages[0].content[0]'],
    [call({ id: 'c', type: 'mcp' }), 'unsupported_parameter', 'messages[0].tool_calls[0]'],
    [call({ id: 'c', type: 'function' }), 'invalid_value', 'messages[0].tool_calls[0].function'],
    [call({ id: 'c', type: 'custom' }), 'invalid_value', 'messages[0].tool_calls[0].custom'],
    [call({ function: { name: '' } }), 'invalid_value', 'messages[0].tool_calls[0].function.name'],
    [assistant({ function_call: {} }), 'missing_parameter', 'messages[0].function_call.name'],
  ];
  for (const [message, kind, param] of cases)
    t.strictSame(
      refusal(() => decodeMessages(message)),
      { kind, param },
      JSON.stringify(message),
    );
});
