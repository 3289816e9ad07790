import { test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { encodeText } from '../messages/samples.js';
import { decode } from './samples.js';

const mark = { cache_control: { type: 'ephemeral' } };
const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } };
const callOf = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });

/** What a messages upstream gets of a chat client's body. */
const sent = (body: JsonObject) =>
  JSON.parse(encodeText(decode({ messages: [{ role: 'user', content: 'hi' }], ...body }))) as JsonObject;

test('marks of parts, of messages and of tools keep their place toward a messages upstream', async (t) => {
  const body = sent({
    tools: [
      { type: 'function', function: { name: 'f', ...mark } },
      { type: 'function', function: { name: 'g' } },
    ],
    messages: [
      {
        role: 'system',
        content: [
          { type: 'text', text: 'a', ...hour },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'user', content: 'hi', ...mark },
      { role: 'assistant', content: 'so', tool_calls: [callOf('1')] },
      { role: 'tool', tool_call_id: '1', content: [{ type: 'text', text: 'r', ...mark }] },
    ],
  });
  t.match(body.tools, [
    { name: 'f', ...mark },
    { name: 'g', cache_control: undefined },
  ]);
  t.strictSame(body.system, [
    { type: 'text', text: 'a', ...hour },
    { type: 'text', text: 'b' },
  ]);
  t.strictSame(body.messages, [
    { role: 'user', content: [{ type: 'text', text: 'hi', ...mark }] },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'so' },
        { type: 'tool_use', id: '1', name: 'f', input: {} },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: 'r', ...mark }] },
  ]);
});

test('marks of the assistant, of results as messages, of media and of later instructions', async (t) => {
  const url = 'https://example.com/a.png';
  const { messages } = sent({
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url }, ...mark }] },
      { role: 'assistant', content: null, tool_calls: [callOf('1')], ...mark },
      { role: 'tool', tool_call_id: '1', content: 'r', ...mark },
      { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
      { role: 'developer', content: 'Be brief.', ...mark },
    ],
  });
  t.match(messages, [
    { content: [{ type: 'image', ...mark }] },
    { content: [{ type: 'tool_use', ...mark }] },
    { content: [{ type: 'tool_result', ...mark }] },
    { content: [{ text: 'x', cache_control: undefined }] },
    { content: [{ text: 'Be brief.', ...mark }] },
  ]);
});

test('what is no mark that the vendor documents is none', async (t) => {
  const tool = (cache_control: unknown) =>
    decode({ tools: [{ type: 'function', cache_control, function: { name: 'f' } }] }).tools[0]?.cache;
  for (const value of [true, null, {}, { type: 'persistent' }, 'ephemeral']) t.equal(tool(value), undefined);
  t.strictSame(tool({ type: 'ephemeral', ttl: '2y' }), { ttl: null });
});
