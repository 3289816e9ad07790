import { test } from 'tap';
import { streamedWeight, writtenIn } from '../../src/stream/streamed-text.js';
import { Tail } from '../../src/wire/tail.js';

test('what a model has written is found in the events of every text protocol', async (t) => {
  const events: readonly (readonly [characters: number, event: unknown])[] = [
    [5, { choices: [{ index: 0, delta: { content: 'Hello', role: 'assistant' }, finish_reason: null }] }],
    [4, { choices: [{ delta: { reasoning_content: 'Why?' } }] }],
    [6, { choices: [{ delta: { tool_calls: [{ id: 'call_1', function: { arguments: '{"a":1' } }] } }] }],
    [3, { choices: [{ text: 'abc', logprobs: null }] }],
    [5, { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hello' } }],
    [5, { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{"a":' } }],
    [0, { type: 'content_block_start', content_block: { type: 'tool_use', id: 't', name: 'f', input: {} } }],
    [0, { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' } }],
    [5, { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Hello' }],
    [0, { type: 'response.output_text.done', text: 'Hello' }],
    [0, { type: 'response.output_item.done', item: { content: [{ type: 'output_text', text: 'Hello' }] } }],
    [0, { type: 'response.created', response: { output: [], instructions: 'Be brief.' } }],
    [5, { candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] } }] }],
    [7, { candidates: [{ content: { parts: [{ functionCall: { name: 'f', args: { a: 1 } } }] } }] }],
    [0, { candidates: [{ content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }] } }] }],
  ];
  for (const [characters, event] of events)
    t.equal(writtenIn(event).weight, characters, JSON.stringify(event));
});

test('the same in whole answers', async (t) => {
  t.equal(writtenIn({ choices: [{ message: { role: 'assistant', content: 'Hello' } }] }).weight, 5);
  t.equal(writtenIn({ id: 'msg', content: [{ type: 'text', text: 'Hello' }], model: 'm' }).weight, 5);
  t.equal(writtenIn({ output: [{ content: [{ text: 'Hello' }] }], instructions: 'Be brief.' }).weight, 5);
  for (const none of [null, 5, 'text', [], {}]) t.equal(writtenIn(none).weight, 0);
});

test('nesting without end is left alone', async (t) => {
  let nested: unknown = { text: 'deep' };
  for (let i = 0; i < 50_000; i++) nested = { content: nested };
  t.equal(writtenIn(nested).weight, 0);
});

const event = (text: string): Buffer =>
  Buffer.from(
    `data: ${JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content: text } }] })}\n\n`,
  );

function afterEvents(texts: readonly string[]): number {
  const tail = new Tail();
  let bytes = 0;
  for (const text of texts) {
    tail.add(event(text));
    bytes += event(text).length;
  }
  return streamedWeight(tail.bytes(), bytes);
}

test('a short stream is counted exactly, and a long one by its last events', async (t) => {
  t.equal(afterEvents(['Hello', ' ', 'world']), 11);
  t.equal(afterEvents(new Array(5000).fill('four')), 20_000);
  const mixed = Array.from({ length: 5000 }, (_, index) => (index % 2 === 0 ? 'two' : 'seven..'));
  const off = Math.abs(afterEvents(mixed) - 25_000);
  t.ok(off < 2500, `${off} of 25000`);
});

test('comments and the end mark are no text', async (t) => {
  const bytes = Buffer.concat([Buffer.from(': ping\n\n'), event('Hello'), Buffer.from('data: [DONE]\n\n')]);
  t.equal(streamedWeight(bytes, bytes.length), 5);
  t.equal(streamedWeight(Buffer.alloc(0), 0), 0);
});

test('events that are larger than what is kept count as text, up to a size', async (t) => {
  const tail = new Tail();
  const large = event('x'.repeat(10_000));
  tail.add(large);
  t.equal(streamedWeight(tail.bytes(), large.length), large.length);
  t.equal(streamedWeight(tail.bytes(), 10_000_000), 64 * 1024);
});

test('a stream whose last events have no text is not taken for one without any', async (t) => {
  const { length } = event('four');
  const ended = new Array(30).fill('');
  const bytes = 1000 * length + ended.length * event('').length;
  t.equal(afterEvents([...new Array(1000).fill('four'), ...ended]), Math.min(bytes, 64 * 1024));
  t.equal(afterEvents(['four', '']), 4, 'a short one is read whole');
  const silent = new Tail();
  for (let i = 0; i < 1000; i++) silent.add(Buffer.from(': nothing yet\n\n'));
  t.equal(streamedWeight(silent.bytes(), 15_000), 0, 'signs of life are none');
});

test('a stream whose text is one event that is longer than its kept end is not empty because an end mark follows', async (t) => {
  const tail = new Tail();
  const text = event('words '.repeat(5000));
  const mark = Buffer.from('data: [DONE]\n\n');
  tail.add(text);
  tail.add(mark);
  t.equal(streamedWeight(tail.bytes(), text.length + mark.length), text.length + mark.length);
  const silent = new Tail();
  for (let at = 0; at < 500; at++) silent.add(Buffer.from(': still there\n\n'));
  t.equal(streamedWeight(silent.bytes(), 500 * 15), 0, 'comments are no text');
});
