import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { tagUnsigned } from '../../../../src/conversation/unsigned-reasoning.js';
import { GatewayError } from '../../../../src/errors.js';
import { chatCodec } from '../../../../src/protocols/chat/index.js';
import { brief, context, decodeStream } from '../samples.js';

const base = '"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m"';
const totals = { input: 1, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 };
const start: StreamEvent = { kind: 'start', usage: null };
const text = (value: string, choice = 0): StreamEvent => ({ kind: 'text', choice, text: value });
const finish = (choice = 0): StreamEvent => ({ kind: 'finish', choice, reason: 'stop', stopSequence: null });
const callStart = (more: object = {}): StreamEvent => ({
  kind: 'callStart',
  choice: 0,
  call: 0,
  id: 'call_1',
  name: 'f',
  custom: false,
  ...more,
});
const callArguments = (value: string): StreamEvent => ({
  kind: 'callArguments',
  choice: 0,
  call: 0,
  text: value,
});
const callEnd: StreamEvent = { kind: 'callEnd', choice: 0, call: 0 };
const end: StreamEvent = { kind: 'end' };

function encode(events: readonly StreamEvent[], includeUsage = true, userAgent = ''): string {
  const encoder = chatCodec.createEncoder({ ...context, includeUsage, userAgent });
  return events.map((event) => encoder.encode(event)).join('');
}

/** The first choice of every chunk. */
function choices(events: readonly StreamEvent[], userAgent = '') {
  return encode(events, false, userAgent)
    .split('\n\n')
    .filter((event) => event.startsWith('data: {"id"'))
    .map((event) => JSON.parse(event.slice('data: '.length)).choices[0]);
}

test('a tool call with usage, byte for byte', async (t) => {
  const events: StreamEvent[] = [
    start,
    callStart(),
    callArguments('{"a":1}'),
    callEnd,
    { kind: 'finish', choice: 0, reason: 'toolCalls', stopSequence: null },
    { kind: 'usage', usage: totals },
    end,
  ];
  t.equal(
    encode(events),
    `data: {${base},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}\n\n` +
      `data: {${base},"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}],"usage":null}\n\n` +
      `data: {${base},"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1}"}}]},"finish_reason":null}],"usage":null}\n\n` +
      `data: {${base},"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}\n\n` +
      `data: {${base},"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}\n\n` +
      'data: [DONE]\n\n',
  );
  t.notMatch(encode(events, false), 'usage', 'nobody asked for it');
});

test('a client that takes each piece for a call gets each call in one, unless it is very long', async (t) => {
  const events: StreamEvent[] = [
    callStart({ signature: 'signed' }),
    callArguments('{"a"'),
    callArguments(':1}'),
    callEnd,
    callStart({ call: 1, id: 'call_2' }),
    { kind: 'callArguments', choice: 0, call: 1, text: '{}' },
    { kind: 'callEnd', choice: 0, call: 1 },
    { kind: 'finish', choice: 0, reason: 'toolCalls', stopSequence: null },
    end,
  ];
  const first = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
  for (const client of [
    'ai-sdk/xai/5.0.12 ai-sdk/provider-utils/5.0.81 runtime/node.js/v24.21.0',
    'ai-sdk/mistral/3.0.69 ai-sdk/provider-utils/4.0.40',
    'mistral-client-typescript/2.7.0',
    'speakeasy-sdk/typescript 2.7.0 2.884.13 1.0.0 @mistralai/mistralai',
  ])
    t.strictSame(
      choices([start, ...events], client).map(({ delta }) => delta.tool_calls),
      [
        undefined,
        [{ ...first, extra_content: { google: { thought_signature: 'signed' } } }],
        [{ index: 1, id: 'call_2', type: 'function', function: { name: 'f', arguments: '{}' } }],
        undefined,
      ],
      client,
    );
  t.equal(choices(events, 'ai-sdk/openai/4.0.118').length, 7, 'others get it as it comes');
  const long = 'x'.repeat(900_000);
  const pieces = choices(
    [callStart(), ...Array.from({ length: 4 }, () => callArguments(long)), callEnd],
    'ai-sdk/xai/5',
  );
  t.strictSame(
    pieces.slice(1).map(({ delta }) => delta.tool_calls[0].function.arguments.length),
    [1_800_000, 900_000, 900_000],
  );
});

test('usage that came at the start counts until there is a later one', async (t) => {
  const early: StreamEvent = { kind: 'start', usage: { ...totals, reasoning: 1 } };
  t.match(
    encode([early, finish(), end]),
    '"completion_tokens_details":{"reasoning_tokens":1}}}\n\ndata: [DONE]',
  );
  t.notMatch(encode([early, finish(), { kind: 'usage', usage: totals }, end]), 'details');
  t.match(encode([start, finish(), end]), '"usage":null}\n\ndata: [DONE]', 'none was reported');
});

test('each kind of step has its delta', async (t) => {
  const token = { token: 'a', logprob: -1, bytes: null, top_logprobs: [] };
  const deltas = choices([
    start,
    { kind: 'reasoning', choice: 0, text: 'h"m' },
    { kind: 'signature', choice: 0, signature: 'gw1.s.messages.bQ.x' },
    text('a\n'),
    text(''),
    { kind: 'text', choice: 0, text: '', logprobs: [token] },
    { kind: 'citation', choice: 0, citation: { start: 1, end: 2, url: 'u', title: 't' } },
    { kind: 'refusal', choice: 0, text: 'no' },
    finish(),
    end,
  ]);
  const citation = { start_index: 1, end_index: 2, url: 'u', title: 't' };
  t.strictSame(deltas, [
    { index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null },
    { index: 0, delta: { reasoning_content: 'h"m' }, finish_reason: null },
    { index: 0, delta: { content: 'a\n' }, finish_reason: null },
    { index: 0, delta: { content: '' }, logprobs: { content: [token], refusal: null }, finish_reason: null },
    {
      index: 0,
      delta: { annotations: [{ type: 'url_citation', url_citation: citation }] },
      finish_reason: null,
    },
    { index: 0, delta: { refusal: 'no' }, finish_reason: null },
    { index: 0, delta: {}, finish_reason: 'stop' },
  ]);
});

test('custom calls have an input, and calls without an id get one', async (t) => {
  const [, first, next, , last] = choices([
    start,
    callStart({ custom: true, id: '' }),
    callArguments('free'),
    callEnd,
    callStart({ call: 1, choice: 0 }),
    finish(),
  ]);
  t.strictSame(first.delta.tool_calls, [
    { index: 0, id: 'call_1_0', type: 'custom', custom: { name: 'f', input: '' } },
  ]);
  t.strictSame(next.delta.tool_calls, [{ index: 0, custom: { input: 'free' } }]);
  t.equal(last.finish_reason, 'tool_calls', 'calls decide the reason');
});

test('each choice begins with its role', async (t) => {
  const seen = choices([start, text('b', 1), text('a'), finish(), text('c', 1), finish(1), finish(2)]);
  t.strictSame(
    seen.map(({ index, delta, finish_reason }) => [index, delta.role ?? delta.content ?? finish_reason]),
    [
      [0, 'assistant'],
      [1, 'assistant'],
      [1, 'b'],
      [0, 'a'],
      [0, 'stop'],
      [1, 'c'],
      [1, 'stop'],
      [2, 'assistant'],
      [2, 'stop'],
    ],
  );
});

test('an error is the last event of a stream, without the usual end', async (t) => {
  const error = new GatewayError('upstream_error', 'broke "off"');
  t.equal(
    encode([{ kind: 'error', error }]),
    'data: {"error":{"message":"broke \\"off\\"","type":"server_error","param":null,"code":"upstream_error"}}\n\n',
  );
});

test('what the encoder writes, the decoder reads', async (t) => {
  const events: StreamEvent[] = [
    start,
    { kind: 'reasoning', choice: 0, text: 'hm' },
    { kind: 'signature', choice: 0, signature: tagUnsigned('reasoning_content', 'up') },
    text('a'),
    callStart(),
    callArguments('{"a":'),
    callArguments('1}'),
    callEnd,
    callStart({ call: 1, id: 'call_2', custom: true }),
    { kind: 'callArguments', choice: 0, call: 1, text: 'free' },
    { kind: 'callEnd', choice: 0, call: 1 },
    { kind: 'finish', choice: 0, reason: 'toolCalls', stopSequence: null },
    { kind: 'usage', usage: totals },
    end,
  ];
  const data = encode(events)
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.slice('data: '.length));
  t.strictSame(brief(decodeStream(...data)), brief(events));
});

test('clients of vendors that always tell the usage get it beside the reason for the end', async (t) => {
  const events: StreamEvent[] = [
    start,
    text('a'),
    text('b', 1),
    finish(),
    finish(1),
    { kind: 'usage', usage: totals },
    end,
  ];
  const told = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const chunksOf = (given: readonly StreamEvent[], userAgent: string, includeUsage = false) =>
    encode(given, includeUsage, userAgent)
      .split('\n\n')
      .filter((event) => event.startsWith('data: {'))
      .map((event) => JSON.parse(event.slice('data: '.length)));
  for (const userAgent of [
    'ai/6.0.326 ai-sdk/openrouter/2.10.0',
    'ai-sdk/mistral/3.0.69',
    'mistral-client-typescript/2.7.0',
    'ai-sdk/cerebras/2.0.82',
    'ai-sdk/groq/3.0.71',
    'Groq/JS 1.6.0',
  ]) {
    const chunks = chunksOf(events, userAgent);
    const [last] = chunks.slice(-1);
    t.strictSame(last.usage, told, userAgent);
    t.strictSame(
      last.choices,
      [{ index: 1, delta: {}, finish_reason: 'stop' }],
      'in the chunk with the last end',
    );
    t.strictSame(last.x_groq, /groq/i.test(userAgent) ? { usage: told } : undefined, "in Groq's own place");
    t.strictSame(
      chunks.map(({ usage }) => usage).filter((usage) => usage !== undefined),
      [told],
      'once, and no null before',
    );
    t.equal(chunks.filter(({ choices: [choice] }) => choice.finish_reason === 'stop').length, 2);
  }
  t.ok(encode(events, false, 'ai-sdk/groq/3').endsWith('data: [DONE]\n\n'));
  t.equal(chunksOf(events, 'ai-sdk/groq/3', true).at(-1).choices.length, 0, 'as asked for, where it is');
  t.equal(chunksOf(events, 'OpenAI/JS 6.0.0').at(-1).usage, undefined);
  const without = events.filter(({ kind }) => kind !== 'usage');
  t.equal(chunksOf(without, 'ai-sdk/groq/3').at(-1).choices[0].finish_reason, 'stop', 'without a usage');
  const fault = new GatewayError('upstream_error', 'It broke.');
  const broken = chunksOf([start, text('a'), finish(), { kind: 'error', error: fault }], 'ai-sdk/groq/3');
  t.equal(broken.at(-2).choices[0].finish_reason, 'stop', 'before an error');
  t.ok(broken.at(-1).error);
});
