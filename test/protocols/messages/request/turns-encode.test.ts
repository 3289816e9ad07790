import { test } from 'tap';
import type { MediaPart, ToolCallPart, ToolResultPart, Turn } from '../../../../src/conversation/request.js';
import { tagSignature } from '../../../../src/conversation/signature.js';
import { at } from '../../../support/json.js';
import { encode, encodeText, plain, token } from '../samples.js';

const text = (text: string) => ({ kind: 'text', text }) as const;
const user = (...parts: (string | MediaPart | ToolResultPart)[]): Turn => ({
  role: 'user',
  parts: parts.map((part) => (typeof part === 'string' ? text(part) : part)),
});
const assistant = (...parts: (string | ToolCallPart)[]): Turn => ({
  role: 'assistant',
  parts: parts.map((part) => (typeof part === 'string' ? text(part) : part)),
});
const call = (id: string, input = '{"a":1}'): ToolCallPart => ({
  kind: 'toolCall',
  id,
  name: 'f',
  input,
  custom: false,
  at: '',
});
const result = (callId: string, ...content: ToolResultPart['content'][number][]): ToolResultPart => ({
  kind: 'toolResult',
  callId,
  name: 'f',
  content,
  isError: false,
  at: '',
});
const image: MediaPart = {
  kind: 'image',
  source: { kind: 'data', mediaType: 'image/png', data: 'AA' },
  detail: 'high',
  name: null,
  at: '',
};
const messagesOf = (...turns: Turn[]) => encode({ turns }).messages;
const block = (text: string) => ({ type: 'text', text });
const toolUse = (id: string, input: object = { a: 1 }) => ({ type: 'tool_use', id, name: 'f', input });
const toolResult = (id: string, more: object = {}) => ({ type: 'tool_result', tool_use_id: id, ...more });

test('instructions within the conversation are messages of the system, behind the user, for models that take them', (t) => {
  const system = (text: string): Turn => ({ role: 'system', text });
  const sent = (...turns: Turn[]) => encode({ turns }, { systemMessages: true }).messages;
  const asked = { role: 'user', content: [block('a')] };
  const answered = { role: 'assistant', content: [block('b')] };
  const told = { role: 'system', content: [block('S')] };
  t.same(sent(user('a'), system('S')), [asked, told]);
  t.same(sent(user('a'), system('S'), assistant('b'), user('a')), [asked, told, answered, asked]);
  t.same(sent(user('a'), assistant('b'), system('S'), user('a')), [asked, answered, asked, told]);
  t.same(sent(user('a'), system('S'), user('c'), system('T')), [
    { role: 'user', content: [block('a'), block('c')] },
    { role: 'system', content: [block('S'), block('T')] },
  ]);
  t.same(
    sent(user('a'), assistant('b'), system('S')),
    [asked, answered, { ...told, role: 'user' }],
    'the vendor refuses one that no message of the user precedes',
  );
  const marked = { role: 'system', text: 'S', cache: { ttl: null } } as const;
  t.match(sent(user('a'), marked), [asked, { content: [{ cache_control: { type: 'ephemeral' } }] }]);
  t.end();
});

test('turns of one role in a row are one message', async (t) => {
  t.same(messagesOf(user('a'), user('b'), assistant('c'), assistant(call('1')), user(result('1'))), [
    { role: 'user', content: [block('a'), block('b')] },
    { role: 'assistant', content: [block('c'), toolUse('1')] },
    { role: 'user', content: [toolResult('1')] },
  ]);
});

test('all results come first, in one message', async (t) => {
  const messages = messagesOf(
    user('a'),
    assistant(call('1'), 'said after', call('2')),
    user(result('1', text('x')), 'and'),
    user(result('2', text('y'))),
  );
  t.same(messages, [
    { role: 'user', content: [block('a')] },
    { role: 'assistant', content: [block('said after'), toolUse('1'), toolUse('2')] },
    {
      role: 'user',
      content: [toolResult('1', { content: 'x' }), toolResult('2', { content: 'y' }), block('and')],
    },
  ]);
});

test('the history of a call, word by word', async (t) => {
  const body = encodeText({
    ...plain,
    turns: [user('hi'), assistant(call('call_1')), user(result('call_1', text('42')))],
  });
  t.match(
    body,
    '{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"f","input":{"a":1}}]}',
  );
  t.match(body, '{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"42"}]}');
});

test('instructions in the middle are a text of the user where they stand', async (t) => {
  const system: Turn = { role: 'system', text: 'S' };
  t.same(messagesOf(user('a'), assistant(call('1')), system, user(result('1'), 'b')), [
    { role: 'user', content: [block('a')] },
    { role: 'assistant', content: [toolUse('1')] },
    { role: 'user', content: [toolResult('1'), block('S'), block('b')] },
  ]);
  t.same(messagesOf(user('a'), assistant('b'), system), [
    { role: 'user', content: [block('a')] },
    { role: 'assistant', content: [block('b')] },
    { role: 'user', content: [block('S')] },
  ]);
});

test('blank texts are dropped, and messages that have nothing else', async (t) => {
  t.same(
    messagesOf(
      user('', 'a', ' \n'),
      assistant(''),
      user('b'),
      assistant('\n\n', call('1')),
      user(result('1')),
    ),
    [
      { role: 'user', content: [block('a'), block('b')] },
      { role: 'assistant', content: [toolUse('1')] },
      { role: 'user', content: [toolResult('1')] },
    ],
  );
});

test('a begun answer ends without white space', async (t) => {
  t.same(messagesOf(user('a'), assistant('{"x": \n')), [
    { role: 'user', content: [block('a')] },
    { role: 'assistant', content: [block('{"x":')] },
  ]);
  t.same(messagesOf(user('a'), assistant('b \n'), user('c'))?.[1 as never], {
    role: 'assistant',
    content: [block('b \n')],
  });
  const thought: Turn = {
    role: 'assistant',
    parts: [{ kind: 'reasoning', text: 'hm', signature: token('s') }, text('so ')],
  };
  t.same(messagesOf(user('a'), thought), [
    { role: 'user', content: [block('a')] },
    { role: 'assistant', content: [block('so')] },
  ]);
});

test('refusals are text; reasoning is kept where this protocol signed it', async (t) => {
  const turn: Turn = {
    role: 'assistant',
    parts: [
      { kind: 'reasoning', text: 'a', signature: token('s') },
      { kind: 'reasoning', text: '', signature: token('enc', true) },
      { kind: 'reasoning', text: 'b', signature: null },
      { kind: 'reasoning', text: 'c', signature: 'gw1.s.responses.bQ.x' },
      { kind: 'reasoning', text: 'd', signature: 'vendor' },
      { kind: 'refusal', text: 'no' },
    ],
  };
  t.same(messagesOf(user('a'), turn, user('b'))?.[1 as never], {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'a', signature: 's' },
      { type: 'redacted_thinking', data: 'enc' },
      block('no'),
    ],
  });
});

test('media become blocks of images and documents', async (t) => {
  const document = (mediaType: string, data: string, name: string | null = null): MediaPart => ({
    ...image,
    kind: 'document',
    source: { kind: 'data', mediaType, data },
    name,
  });
  const url = { kind: 'url', url: 'https://x', mediaType: null } as const;
  const messages = messagesOf(
    user(
      image,
      { ...image, source: url },
      document('application/pdf', 'AA', 'a.pdf'),
      { ...image, kind: 'document', source: url },
      document('text/csv', Buffer.from('a;é').toString('base64'), 'a.csv'),
    ),
  );
  t.same(messages, [
    {
      role: 'user',
      content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } },
        { type: 'image', source: { type: 'url', url: 'https://x' } },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'AA' },
          title: 'a.pdf',
        },
        { type: 'document', source: { type: 'url', url: 'https://x' } },
        {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'a;é' },
          title: 'a.csv',
        },
      ],
    },
  ]);
});

test('results hold texts and media, and say that they are errors', async (t) => {
  const failed = { ...result('3', text('no')), isError: true };
  const messages = messagesOf(
    user('a'),
    assistant(call('1'), call('2'), call('3'), call('4')),
    user(result('1', text('x'), image), result('2', text('')), failed, {
      ...failed,
      callId: '4',
      content: [],
    }),
  );
  t.same(messages?.[2 as never], {
    role: 'user',
    content: [
      toolResult('1', {
        content: [
          block('x'),
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } },
        ],
      }),
      toolResult('2'),
      toolResult('3', { content: 'no', is_error: true }),
      toolResult('4', { content: 'The tool failed.', is_error: true }),
    ],
  });
});

test('a failed result with media says so in a text, since only texts may stand beside is_error', async (t) => {
  const failed = { ...result('1', text('no'), image), isError: true };
  const messages = messagesOf(user('a'), assistant(call('1')), user(failed));
  t.same(messages?.[2 as never], {
    role: 'user',
    content: [
      toolResult('1', {
        content: [
          block('Error:'),
          block('no'),
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } },
        ],
      }),
    ],
  });
});

test('the arguments of a call keep their digits', async (t) => {
  const body = encodeText({
    ...plain,
    turns: [user('a'), assistant(call('1', '{"id": 12345678901234567890, "x":1.0}')), user(result('1'))],
  });
  t.match(body, '"input":{"id": 12345678901234567890, "x":1.0}}');
});

test('a signature whose words are lost is left out, and with it thinking where the upstream needs a block of it', async (t) => {
  const signature = tagSignature({
    protocol: 'messages',
    model: 'm',
    value: 's',
    redacted: false,
    isWordless: true,
  });
  const turns = (text: string): Turn[] => [
    user('a'),
    { role: 'assistant', parts: [{ kind: 'reasoning', text, signature }, call('1')] },
    user(result('1')),
  ];
  const reasoning = { effort: null, budget: 2048, show: true, summary: null };
  const sent = encode({ turns: turns(''), reasoning });
  t.same(at(sent, 'messages', 1), { role: 'assistant', content: [toolUse('1')] });
  t.equal(sent.thinking, undefined);
  t.match(encode({ turns: turns(''), reasoning }, { thinking: 'adaptive' }).thinking, { type: 'adaptive' });
  const returned = encode({ turns: turns('hm'), reasoning });
  t.same(at(returned, 'messages', 1, 'content', 0), { type: 'thinking', thinking: 'hm', signature: 's' });
  t.match(returned.thinking, { type: 'enabled' });
});
