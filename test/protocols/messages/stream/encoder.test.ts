import Anthropic0 from 'anthropic0';
import Anthropic1 from 'anthropic1';
import { test } from 'tap';
import type { FinishReason, StreamEvent } from '../../../../src/conversation/answer.js';
import { noSignature } from '../../../../src/conversation/signature.js';
import { GatewayError } from '../../../../src/errors.js';
import { decodeStream, encodeStream, sse, token } from '../samples.js';

const usage = (input: number, output: number) => ({
  input,
  output,
  cached: 0,
  cacheWritten: 0,
  reasoning: 0,
});
const start: StreamEvent = { kind: 'start', usage: usage(1, 1) };
const text = (text: string, choice = 0): StreamEvent => ({ kind: 'text', choice, text });
const thought = (text: string): StreamEvent => ({ kind: 'reasoning', choice: 0, text });
const signed = (signature: string): StreamEvent => ({ kind: 'signature', choice: 0, signature });
const call = (call: number, id: string, name = 'f', args = '{"a":1}'): StreamEvent[] => [
  { kind: 'callStart', choice: 0, call, id, name, custom: false },
  { kind: 'callArguments', choice: 0, call, text: args },
  { kind: 'callEnd', choice: 0, call },
];
const finish = (reason: FinishReason, stopSequence: string | null = null): StreamEvent => ({
  kind: 'finish',
  choice: 0,
  reason,
  stopSequence,
});
const end: StreamEvent = { kind: 'end' };

const goldenEvents: StreamEvent[] = [
  start,
  thought('t'),
  signed('sig'),
  text('hi'),
  ...call(0, 'toolu_1'),
  finish('toolCalls'),
  { kind: 'usage', usage: usage(5, 9) },
  end,
];
const golden = [
  '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}',
  '{"type":"ping"}',
  '{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t"}}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}',
  '{"type":"content_block_stop","index":0}',
  '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
  '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}',
  '{"type":"content_block_stop","index":1}',
  '{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}',
  '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}}',
  '{"type":"content_block_stop","index":2}',
  '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":5,"output_tokens":9}}',
  '{"type":"message_stop"}',
]
  .map((data) => `event: ${(JSON.parse(data) as { type: string }).type}\ndata: ${data}\n\n`)
  .join('');

/** The data of the events of a stream, the first two and the last two aside. */
function blocksOf(events: readonly StreamEvent[], showReasoning = true): object[] {
  const stream = encodeStream([start, ...events, finish('stop'), end], { showReasoning });
  const data = [...stream.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json ?? '') as object);
  return data.slice(2, -2);
}

const opened = (index: number, content_block: object) => ({
  type: 'content_block_start',
  index,
  content_block,
});
const piece = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta });
const closed = (index: number) => ({ type: 'content_block_stop', index });
const thinking = { type: 'thinking', thinking: '', signature: '' };

test('the stream of thinking, text and a call, byte by byte', async (t) => {
  t.equal(encodeStream(goldenEvents), golden);
});

const sdkOptions = {
  apiKey: 'x',
  fetch: async () => new Response(golden, { headers: { 'content-type': 'text/event-stream' } }),
};
const sdkRequest = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'hi' }] };
const sdks: [string, () => Promise<object>][] = [
  ['0.x', () => new Anthropic0(sdkOptions).messages.stream(sdkRequest).finalMessage()],
  ['1.x', () => new Anthropic1(sdkOptions).messages.stream(sdkRequest).finalMessage()],
];

for (const [version, read] of sdks) {
  test(`the SDK of version ${version} reads the stream`, async (t) => {
    t.match(await read(), {
      id: 'msg_1',
      content: [
        { type: 'thinking', thinking: 't', signature: 'sig' },
        { type: 'text', text: 'hi' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 5, output_tokens: 9 },
    });
  });
}

test('one block is open at a time', async (t) => {
  t.same(blocksOf([text('a'), text('b'), thought('c'), text('d'), ...call(0, 'x'), ...call(1, 'y')]), [
    opened(0, { type: 'text', text: '' }),
    piece(0, { type: 'text_delta', text: 'a' }),
    piece(0, { type: 'text_delta', text: 'b' }),
    closed(0),
    opened(1, thinking),
    piece(1, { type: 'thinking_delta', thinking: 'c' }),
    piece(1, { type: 'signature_delta', signature: noSignature }),
    closed(1),
    opened(2, { type: 'text', text: '' }),
    piece(2, { type: 'text_delta', text: 'd' }),
    closed(2),
    opened(3, { type: 'tool_use', id: 'x', name: 'f', input: {} }),
    piece(3, { type: 'input_json_delta', partial_json: '{"a":1}' }),
    closed(3),
    opened(4, { type: 'tool_use', id: 'y', name: 'f', input: {} }),
    piece(4, { type: 'input_json_delta', partial_json: '{"a":1}' }),
    closed(4),
  ]);
});

test('a signature closes the thinking before it, or stands for thinking that is not shown', async (t) => {
  const block = (index: number, signature: string) => [
    opened(index, thinking),
    piece(index, { type: 'signature_delta', signature }),
    closed(index),
  ];
  t.same(blocksOf([signed(token('enc', true)), signed('b')]), [
    opened(0, { type: 'redacted_thinking', data: token('enc', true) }),
    closed(0),
    ...block(1, 'b'),
  ]);
  t.same(blocksOf([thought('hidden'), signed('a')], false), block(0, 'a'));
  t.match(blocksOf([thought('hm'), signed(token('enc', true))])[2], {
    delta: { signature: token('enc', true) },
  });
  t.same(blocksOf([thought('hidden')], false), []);
});

test('a signature behind text has a block of its own only when more follows', async (t) => {
  const said = [
    opened(0, { type: 'text', text: '' }),
    piece(0, { type: 'text_delta', text: 'a' }),
    closed(0),
  ];
  t.same(blocksOf([text('a'), signed('late')]), said, 'clients read the last block as the answer');
  t.same(blocksOf([text('a'), signed('s'), ...call(0, 'x')]).slice(0, 6), [
    ...said,
    opened(1, thinking),
    piece(1, { type: 'signature_delta', signature: 's' }),
    closed(1),
  ]);
});

test('refusals are text; empty pieces and other answers are left out', async (t) => {
  const events: StreamEvent[] = [
    { kind: 'refusal', choice: 0, text: 'no' },
    text(''),
    thought(''),
    text('other', 1),
    { ...finish('length'), choice: 1 } as StreamEvent,
  ];
  t.same(blocksOf(events), [
    opened(0, { type: 'text', text: '' }),
    piece(0, { type: 'text_delta', text: 'no' }),
    closed(0),
  ]);
});

test('ids that the protocol does not know are changed, missing ones are made', async (t) => {
  const [first, , , second] = blocksOf([...call(0, ''), ...call(1, 'functions.f:0')]) as {
    content_block: object;
  }[];
  t.match(first?.content_block, { id: 'toolu_1_0' });
  t.match(second?.content_block, { id: /^[\w-]{1,64}$/ });
});

test('the end tells why, and all the usage that is known', async (t) => {
  const last = (...events: StreamEvent[]) =>
    encodeStream([start, ...events, end]).split('event: message_delta\n')[1];
  const written = (stop_reason: string, stop_sequence: string | null, usage: object) =>
    `data: ${JSON.stringify({ type: 'message_delta', delta: { stop_reason, stop_sequence }, usage })}\n\n${sse({ type: 'message_stop' })}`;
  const plain = { input_tokens: 1, output_tokens: 1 };
  t.equal(last(finish('stopSequence', '#')), written('stop_sequence', '#', plain));
  t.equal(last(finish('length', '#')), written('max_tokens', null, plain));
  t.equal(last(...call(0, 'x'), finish('stop')), written('tool_use', null, plain));
  t.equal(last(), written('end_turn', null, plain));
  const details = { input: 20, output: 9, cached: 8, cacheWritten: 2, reasoning: 4 };
  t.equal(
    last({ kind: 'usage', usage: details }, finish('filtered')),
    written('refusal', null, {
      input_tokens: 10,
      output_tokens: 9,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 8,
      output_tokens_details: { thinking_tokens: 4 },
    }),
  );
  t.match(encodeStream([{ kind: 'start', usage: null }]), '"usage":{"input_tokens":0,"output_tokens":0}');
});

test('an error is the last word', async (t) => {
  const error = new GatewayError('overloaded', 'busy');
  t.equal(
    encodeStream([{ kind: 'error', error }]),
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"req_1"}\n\n',
  );
});

test('what is written is read back as it was', async (t) => {
  const data = [...encodeStream(goldenEvents).matchAll(/^data: (.*)$/gm)].map(([, json]) => json ?? '');
  t.same(
    decodeStream(...data),
    goldenEvents
      .map((event) => (event.kind === 'signature' ? { ...event, signature: token('sig') } : event))
      // The usage comes with the reason, before it.
      .toSpliced(7, 2, goldenEvents[8] as StreamEvent, goldenEvents[7] as StreamEvent),
  );
});
