import { test } from 'tap';
import { chatClient } from './chat-client.js';
import type { Client } from './client.js';
import { generateContentClient } from './generate-content-client.js';
import { messagesClient } from './messages-client.js';
import { responsesClient } from './responses-client.js';

type Typed = Readonly<Record<string, unknown>> & { readonly type: string };

/** Makes server-sent events of the given data, with event lines if the protocol has them. */
function streamOf(client: Client, events: readonly (object | string)[]): string {
  const named = client === messagesClient || client === responsesClient;
  return events
    .map((event) => {
      if (typeof event === 'string') return `data: ${event}\n\n`;
      const line = named ? `event: ${(event as Typed).type}\n` : '';
      return `${line}data: ${JSON.stringify(event)}\n\n`;
    })
    .join('');
}

const chunk = (rest: object): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  ...rest,
});
const delta = (delta: object, finish_reason: string | null = null): object =>
  chunk({ choices: [{ index: 0, delta, finish_reason }], usage: null });
const callDelta = (call: object): object => delta({ tool_calls: [{ index: 0, ...call }] });

const chatEvents = [
  delta({ role: 'assistant', content: '' }),
  callDelta({ id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }),
  callDelta({ function: { arguments: '{"a":1}' } }),
  delta({}, 'tool_calls'),
  chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }),
  '[DONE]',
];

const usage = { input_tokens: 1, output_tokens: 1 };
const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
const blockDelta = (index: number, delta: object): Typed => ({ type: 'content_block_delta', index, delta });
const messageEvents: readonly Typed[] = [
  {
    type: 'message_start',
    message: { ...message, stop_reason: null, stop_sequence: null, usage },
  },
  { type: 'ping' },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
  blockDelta(0, { type: 'thinking_delta', thinking: 't' }),
  blockDelta(0, { type: 'signature_delta', signature: 'sig' }),
  { type: 'content_block_stop', index: 0 },
  { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
  blockDelta(1, { type: 'text_delta', text: 'hi' }),
  { type: 'content_block_stop', index: 1 },
  {
    type: 'content_block_start',
    index: 2,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
  },
  blockDelta(2, { type: 'input_json_delta', partial_json: '{"a":1}' }),
  { type: 'content_block_stop', index: 2 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage },
  { type: 'message_stop' },
];

const part = (text: string): object => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const item = (status: string, content: readonly object[]): object => ({
  id: 'msg_1',
  type: 'message',
  status,
  role: 'assistant',
  content,
});
const response = (status: string, output: readonly object[], usage: object | null): object => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status,
  output,
  usage,
});
const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
const untold: readonly Typed[] = [
  { type: 'response.created', response: response('in_progress', [], null) },
  { type: 'response.in_progress', response: response('in_progress', [], null) },
  { type: 'response.output_item.added', output_index: 0, item: item('in_progress', []) },
  { type: 'response.content_part.added', ...place, part: part('') },
  { type: 'response.output_text.delta', ...place, delta: 'hi', logprobs: [] },
  { type: 'response.output_text.done', ...place, text: 'hi', logprobs: [] },
  { type: 'response.content_part.done', ...place, part: part('hi') },
  { type: 'response.output_item.done', output_index: 0, item: item('completed', [part('hi')]) },
  {
    type: 'response.completed',
    response: response('completed', [item('completed', [part('hi')])], {
      input_tokens: 1,
      output_tokens: 1,
      total_tokens: 2,
    }),
  },
];
const responseEvents = untold.map((event, sequence_number): Typed => ({ ...event, sequence_number }));

const block = (part: object, rest: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts: [part] }, ...rest, index: 0 }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
  modelVersion: 'g',
  responseId: 'r',
});
const contentEvents = [
  block({ text: 'a' }),
  block({ functionCall: { id: 'x', name: 'f', args: { a: 1 } } }, { finishReason: 'STOP' }),
];

const call = { name: 'f', args: { a: 1 } };

test('streams that keep the rules are read', async (t) => {
  t.match(chatClient.readStream(streamOf(chatClient, chatEvents)), {
    calls: [{ ...call, id: 'call_1' }],
    finish: 'tools',
    usage: { input: 1, output: 2, reasoning: 0 },
    error: null,
  });
  t.match(messagesClient.readStream(streamOf(messagesClient, messageEvents)), {
    text: 'hi',
    reasoning: 't',
    calls: [{ ...call, id: 'toolu_1' }],
    finish: 'tools',
    turns: [{ content: [{ signature: 'sig' }, { type: 'text' }, { input: { a: 1 } }] }],
  });
  t.match(responsesClient.readStream(streamOf(responsesClient, responseEvents)), {
    text: 'hi',
    finish: 'stop',
    usage: { input: 1, output: 1, reasoning: 0 },
  });
  t.match(generateContentClient.readStream(streamOf(generateContentClient, contentEvents)), {
    text: 'a',
    calls: [{ ...call, id: 'x' }],
    finish: 'tools',
  });
});

const streams = [
  { client: chatClient, events: chatEvents },
  { client: messagesClient, events: messageEvents },
  { client: responsesClient, events: responseEvents },
  { client: generateContentClient, events: contentEvents },
];

test('a stream that is cut, doubled or out of order breaks a rule, at whichever event', async (t) => {
  for (const { client, events } of streams) {
    const breaks = (changed: readonly (object | string)[], what: string): void => {
      t.throws(
        () => client.readStream(streamOf(client, changed)),
        /breaks a rule/,
        `${client.protocol}: ${what}`,
      );
    };
    for (let end = 1; end < events.length; end++) breaks(events.slice(0, end), `cut before ${end}`);
    breaks([...events, events[0] as object], 'more after the end');
    breaks([...events].reverse(), 'backwards');
  }
});

test('lost and swapped events are noticed where a protocol tells', async (t) => {
  const strict = [
    { client: messagesClient, events: messageEvents.filter(({ type }) => type !== 'ping') },
    { client: responsesClient, events: responseEvents },
  ];
  for (const { client, events } of strict) {
    for (const [index, event] of events.entries()) {
      if (event.type.endsWith('_delta') && event.type !== 'message_delta') continue;
      const without = events.filter((each) => each !== event);
      t.throws(
        () => client.readStream(streamOf(client, without)),
        /breaks a rule/,
        `without ${index} ${event.type}`,
      );
    }
  }
});

test('event lines and blank lines are as the SDKs want them', async (t) => {
  for (const { client, events } of streams) {
    const text = streamOf(client, events);
    const broken = [
      text.slice(0, -1),
      `${text}\n`,
      text.replaceAll('\n', '\r\n'),
      text.replace('data: ', 'data:'),
    ];
    const named = text.includes('event: ');
    broken.push(named ? text.replace(/^event: .*\n/, '') : `event: message\n${text}`);
    for (const each of broken) t.throws(() => client.readStream(each), /breaks a rule/, client.protocol);
    t.doesNotThrow(() => client.readStream(`: keep-alive\n\n${text}`), client.protocol);
  }
});

test('errors end a stream, and keep what came before', async (t) => {
  const error = { message: 'gone', type: 'server_error', code: null, param: null };
  const cases = [
    [chatClient, [delta({ role: 'assistant', content: 'so' }), { error }], 'so'],
    [
      messagesClient,
      [...messageEvents.slice(0, 8), { type: 'error', error: { type: 'api_error', message: 'gone' } }],
      'hi',
    ],
    [
      responsesClient,
      [
        ...responseEvents.slice(0, 5),
        {
          type: 'response.failed',
          sequence_number: 5,
          response: { ...response('failed', [], null), error: { code: 'server_error', message: 'gone' } },
        },
        { type: 'error', sequence_number: 6, code: null, message: 'gone', param: null, error },
      ],
      'hi',
    ],
    [
      generateContentClient,
      [contentEvents[0], { error: { code: 500, message: 'gone', status: 'INTERNAL' } }],
      'a',
    ],
  ] as const;
  for (const [client, events, text] of cases) {
    const answer = client.readStream(streamOf(client, events as readonly object[]));
    t.match(answer, { text, error: { status: 200, message: 'gone' } }, client.protocol);
    t.throws(
      () => client.readStream(streamOf(client, [...(events as readonly object[]), events[0] as object])),
      /breaks a rule/,
      `${client.protocol}: more after the error`,
    );
  }
});
