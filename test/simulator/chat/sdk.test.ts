import { test } from 'tap';
import { createClient, helpers, sdks } from '../../support/sdks/openai.js';
import { simulate } from '../../support/simulator.js';
import { chat } from '../ask.js';

const tool = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const messages = [{ role: 'user' as const, content: 'weather in Oslo' }];

for (const sdk of sdks) {
  test(`${sdk.name} lists models, creates, streams and helps with tool calls`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    t.match((await client.models.list()).data, [{ id: 'sim-text', object: 'model' }]);

    const created = await client.chat.completions.create({ model: 'sim-text', messages });
    t.equal(created.choices[0]?.message.content, 'Simulated answer to: weather in Oslo');

    const stream = await client.chat.completions.create({ model: 'sim-text', messages, stream: true });
    let text = '';
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    t.equal(text, 'Simulated answer to: weather in Oslo');

    const helper = helpers(client).stream({
      model: 'sim-text',
      messages,
      tools: [tool],
      stream_options: { include_usage: true },
    });
    const final = await helper.finalChatCompletion();
    t.match(final.choices[0], {
      finish_reason: 'tool_calls',
      message: {
        tool_calls: [{ type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }],
      },
    });
    t.ok(final.usage && final.usage.total_tokens > 0);
  });

  test(`${sdk.name} raises its error classes for what the simulator refuses`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    const send = (text: string, more = {}): Promise<unknown> =>
      client.chat.completions.create({ ...chat(text), ...more } as Parameters<
        typeof client.chat.completions.create
      >[0]);
    await t.rejects(send('a', { model: 'nope' }), { status: 404, code: 'model_not_found', param: 'model' });
    await t.rejects(send('[[fault:status=429 retry-after=7]] a'), {
      status: 429,
      code: 'rate_limit_exceeded',
    });
    await t.rejects(send('[[fault:status=500]] a'), { status: 500, code: 'internal_error' });
    const stream = (await send('[[fault:error-event after=2]] a', {
      stream: true,
    })) as AsyncIterable<unknown>;
    let seen = 0;
    await t.rejects(async () => {
      for await (const _ of stream) {
        seen += 1;
      }
    }, /asked for an error/);
    t.equal(seen, 2);
  });
}
