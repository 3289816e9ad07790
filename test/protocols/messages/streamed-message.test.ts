import { test } from 'tap';
import { StreamedMessage } from '../../../src/protocols/messages/conversation.js';
import { messagesClient } from '../../suites/translation/messages-client.js';
import { clients } from '../../suites/translation/session.js';
import { transformOf, translated } from '../cuts.js';
import { answers, inputs, spoken, streamOf, thought } from '../upstream-streams.js';

const reader = { name: 'messages', client: messagesClient, framing: 'sse' } as const;

function seen(text: string, most = 100_000): StreamedMessage {
  const message = new StreamedMessage(most);
  message.see(Buffer.from(text));
  return message;
}

for (const { protocol } of clients) {
  if (protocol === 'messages') continue;
  test(`what clients are streamed from ${protocol} is put together`, async (t) => {
    const latin1 = translated([Buffer.from(streamOf(answers[protocol]))], transformOf(protocol, reader));
    const text = Buffer.from(latin1, 'latin1').toString();
    const message = seen(text.slice(0, text.lastIndexOf('\n')));
    t.match(message.id, /^msg_/);
    t.equal(message.stopReason, 'tool_use');
    const content = JSON.parse(message.content ?? '[]') as Record<string, unknown>[];
    const joined = (type: string, member: string) =>
      content.map((block) => (block.type === type ? block[member] : '')).join('');
    t.equal(joined('text', 'text'), spoken);
    t.equal(joined('thinking', 'thinking'), thought);
    t.strictSame(
      content.flatMap(({ type, name, input }) => (type === 'tool_use' ? [[name, input]] : [])),
      [
        ['get_weather', JSON.parse(inputs[0])],
        ['get_time', JSON.parse(inputs[1])],
      ],
    );
  });
}

const block = (content_block: object) => ({ type: 'content_block_start', content_block });
const delta = (delta: object) => ({ type: 'content_block_delta', delta });
const stream = (...events: readonly object[]) =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const stop = { type: 'message_stop' };

test('blocks keep what they began with, and calls that were cut are left out', async (t) => {
  const { content } = seen(
    stream(
      block({ type: 'redacted_thinking', data: 'abc' }),
      block({ type: 'tool_use', id: 'a', name: 'f', input: {} }),
      block({ type: 'tool_use', id: 'b', name: 'f', input: {} }),
      delta({ type: 'input_json_delta', partial_json: '{"cut":' }),
      stop,
    ),
  );
  t.strictSame(JSON.parse(content ?? ''), [
    { type: 'redacted_thinking', data: 'abc' },
    { type: 'tool_use', id: 'a', name: 'f', input: {} },
  ]);
});

test('a search and the citations of a text are those of the whole answer', async (t) => {
  const citation = { type: 'web_search_result_location', url: 'https://x/y', title: 'X' };
  const found = [{ type: 'web_search_result', url: 'https://x/y', title: 'X' }];
  const result = { type: 'web_search_tool_result', tool_use_id: 's', content: found };
  const { content } = seen(
    stream(
      block({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
      delta({ type: 'input_json_delta', partial_json: '{"query":"x",' }),
      delta({ type: 'input_json_delta', partial_json: '"n":12345678901234567890}' }),
      block(result),
      block({ type: 'text', text: '' }),
      delta({ type: 'text_delta', text: 'so' }),
      delta({ type: 'citations_delta', citation }),
      stop,
    ),
  );
  t.match(content, '"input":{"query":"x","n":12345678901234567890}');
  t.match(JSON.parse(content ?? ''), [
    { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
    result,
    { type: 'text', text: 'so', citations: [citation] },
  ]);
});

test('of a message that is too long nothing stays in memory', async (t) => {
  const text = block({ type: 'text', text: 'x'.repeat(50) });
  const message = seen(stream(text), 200);
  t.ok(message.held > 50);
  for (const more of [delta({ type: 'text_delta', text: 'x'.repeat(200) }), text, text]) {
    message.see(Buffer.from(stream(more)));
    t.equal(message.held, 0);
  }
});

test('a message that has not ended has no content, nor has one that is too long', async (t) => {
  const text = block({ type: 'text', text: 'x'.repeat(50) });
  t.equal(seen(stream(text)).content, null);
  t.ok(seen(stream(text, stop), 200).content);
  t.equal(seen(stream(text, delta({ type: 'text_delta', text: 'x'.repeat(200) }), stop), 200).content, null);
});
