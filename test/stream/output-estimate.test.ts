import { test } from 'tap';
import { chat } from '../../src/protocols/chat/index.js';
import type { Endpoint } from '../../src/protocols/endpoint.js';
import { generateContent } from '../../src/protocols/generate-content/index.js';
import { messages } from '../../src/protocols/messages/index.js';
import { responses } from '../../src/protocols/responses/index.js';
import type { ObservedTransform } from '../../src/stream/observe.js';
import { observed } from './observed.js';

interface NamedEvent {
  readonly type: string;
  readonly [name: string]: unknown;
}

const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
const named = (event: NamedEvent): string => `event: ${event.type}\n${data(event)}`;
const chunk = (delta: object): string =>
  data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [{ index: 0, delta }] });

/** Each event arrives on its own. */
function passed(endpoint: Endpoint, ...events: readonly string[]): ObservedTransform {
  const transform = observed(endpoint);
  transform.judge(Buffer.from(events[0] ?? ''));
  for (const event of events) transform.pass(Buffer.from(event));
  return transform;
}

const response = { id: 'resp_1', status: 'in_progress', output: [], instructions: 'Be brief.' };
const opening = [
  named({ type: 'response.created', sequence_number: 0, response }),
  named({ type: 'response.in_progress', sequence_number: 1, response }),
  named({
    type: 'response.output_item.added',
    sequence_number: 2,
    output_index: 0,
    item: { id: 'rs_1', type: 'reasoning', summary: [] },
  }),
];
const spoken = (text: string): string =>
  named({ type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, delta: text });
const keepalive = named({ type: 'keepalive', sequence_number: 9 });
const ping = named({ type: 'ping' });
const comment = ': STILL PROCESSING\n\n';
const opened = [
  named({
    type: 'message_start',
    message: { role: 'assistant', content: [], usage: { input_tokens: 50, output_tokens: 1 } },
  }),
  named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
];
const said = named({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: 'hello' },
});

test('signs of life between and behind events are no output', (t) => {
  const many = (sign: string): string[] => new Array(300).fill(sign);
  const streams: readonly (readonly [ObservedTransform, number])[] = [
    [passed(messages, ...opened, ...many(ping)), 1],
    [passed(messages, ...opened, said, ...many(ping)), 2],
    [passed(messages, ...opened, ...many(ping), said, ...many(comment + ping)), 2],
    [passed(responses, ...opening, spoken('hello'), ...many(keepalive)), 2],
    [passed(chat, chunk({ content: 'hello' }), ...many(comment)), 2],
  ];
  for (const [transform, output] of streams)
    for (const brokenBy of ['client', 'upstream'] as const)
      t.match(transform.usageAtEnd(brokenBy), { output, partial: true });
  t.end();
});

test('a usage is read however many signs of life follow it', (t) => {
  const usage = { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 };
  const comments: string[] = new Array(200).fill(comment);
  const ofChat = passed(
    chat,
    chunk({ content: 'hello' }),
    data({ choices: [], usage }),
    ...comments,
    'data: [DONE]\n\n',
  );
  t.strictSame(ofChat.end(), { last: null, error: null });
  t.match(ofChat.usageAtEnd(null), { input: 1000, output: 200, estimated: undefined });
  const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 200 } };
  const pings: string[] = new Array(150).fill(ping);
  const ofMessages = passed(messages, ...opened, said, named(end), ...pings, named({ type: 'message_stop' }));
  t.strictSame(ofMessages.end(), { last: null, error: null });
  t.match(ofMessages.usageAtEnd(null), { input: 50, output: 200, estimated: undefined });
  t.end();
});

test('the number of a sign of life counts among those of the events', (t) => {
  t.equal(passed(responses, ...opening, keepalive).nextNumber, 10);
  const later = named({ type: 'response.output_text.delta', sequence_number: 12, delta: 'a' });
  t.equal(passed(responses, ...opening, keepalive, later).nextNumber, 13);
  t.end();
});

test('a usage that names the input alone says nothing of what was sent', (t) => {
  const text = 'hello '.repeat(8);
  const ofGemini = new Array(30).fill(
    data({
      candidates: [{ content: { role: 'model', parts: [{ text }] } }],
      usageMetadata: { promptTokenCount: 50, totalTokenCount: 50 },
    }),
  );
  const ofChat = new Array(30).fill(
    data({
      choices: [{ index: 0, delta: { content: text } }],
      usage: { prompt_tokens: 50, completion_tokens: 0 },
    }),
  );
  for (const brokenBy of ['client', 'upstream'] as const) {
    t.match(passed(generateContent, ...ofGemini).usageAtEnd(brokenBy), {
      input: 50,
      output: 360,
      partial: true,
    });
    t.match(passed(chat, ...ofChat).usageAtEnd(brokenBy), { input: 50, output: 360, partial: true });
  }
  t.end();
});

test('an event with the name of a sign of life counts by its text if it has some', (t) => {
  const text = 'hello '.repeat(36);
  const spoken = new Array(20).fill(data({ type: 'ping', content: text }));
  const { output = 0 } = passed(chat, chunk({ content: 'hello' }), ...spoken).usageAtEnd('client') ?? {};
  t.ok(output > 900, `${output}`);
  t.end();
});

test('a last event that repeats the request is output only as far as it repeats the answer', (t) => {
  const instructions = 'Answer briefly. '.repeat(20_000);
  const ended = (type: string, more: object = {}): string =>
    named({ type: `response.${type}`, response: { ...response, instructions, error: null, ...more } });
  const words = new Array(20).fill(spoken('hello '));
  const content = [{ type: 'output_text', text: 'hello '.repeat(20) }];
  const output = [{ type: 'message', role: 'assistant', content }];
  const isPartial = { input: 7, partial: true };
  const isEstimated = { input: 7, estimated: true };
  for (const type of ['failed', 'incomplete'])
    for (const events of [[...opening.slice(0, 2)], [opening.slice(0, 2).join('') + ended(type)]]) {
      const silent = passed(responses, ...events, ...(events.length === 1 ? [] : [ended(type)]));
      t.match(silent.usageAtEnd('upstream'), { ...isPartial, output: 0 }, type);
    }
  for (const type of ['completed', 'incomplete']) {
    const repeated = ended(type, { output });
    const spoke = passed(responses, ...opening.slice(0, 2), ...words, repeated);
    t.match(spoke.usageAtEnd(null), { ...isEstimated, output: 30 }, type);
    const atOnce = passed(responses, opening.slice(0, 2).join(''), words.join('') + repeated);
    t.match(atOnce.usageAtEnd(null), { ...isEstimated, output: 30 }, `${type} in one piece`);
    const alone = passed(responses, ...opening.slice(0, 2), repeated);
    t.match(alone.usageAtEnd(null), { ...isEstimated, output: 30 }, `${type} without deltas`);
  }
  const broken = passed(responses, ...opening.slice(0, 2), ...words, ended('failed', { output }));
  t.match(broken.usageAtEnd('upstream'), { ...isPartial, output: 30 });
  const usage = { input_tokens: 90_000, output_tokens: 20, total_tokens: 90_020 };
  const reported = passed(responses, ...opening, ...words, ended('completed', { output, usage }));
  t.match(reported.usageAtEnd(null), { input: 90_000, output: 20, estimated: undefined });
  t.end();
});
