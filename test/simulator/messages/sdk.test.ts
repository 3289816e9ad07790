import { Anthropic as Anthropic0 } from 'anthropic0';
import { Anthropic as Anthropic1 } from 'anthropic1';
import { test } from 'tap';
import { simulate } from '../../support/simulator.js';

interface SdkClass {
  new (options: { apiKey: string; baseURL: string; maxRetries: number }): unknown;
}

const tool = {
  name: 'get_weather',
  input_schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' } },
    required: ['city'],
  },
};
const body = {
  model: 'sim-text',
  max_tokens: 4096,
  messages: [{ role: 'user' as const, content: 'weather in Oslo' }],
};

for (const [name, found] of [
  ['anthropic 0', Anthropic0 as SdkClass],
  ['anthropic 1', Anthropic1 as SdkClass],
] as const) {
  const clientOf = (url: string): Anthropic1 =>
    new found({ apiKey: 'sk-any', baseURL: url.replace(/\/v1$/, ''), maxRetries: 0 }) as Anthropic1;

  test(`${name} creates, counts and streams`, async (t) => {
    const client = clientOf((await simulate(t)).url);
    const created = await client.messages.create(body);
    t.match(created.content, [{ type: 'text', text: 'Simulated answer to: weather in Oslo' }]);
    t.ok(
      (await client.messages.countTokens({ model: body.model, messages: body.messages })).input_tokens > 0,
    );
    let text = '';
    for await (const event of await client.messages.create({ ...body, stream: true })) {
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
        text += event.delta.text;
      }
    }
    t.equal(text, 'Simulated answer to: weather in Oslo');
  });

  test(`${name} helps through thinking, a call and its result`, async (t) => {
    const client = clientOf((await simulate(t)).url);
    const settings = { tools: [tool], thinking: { type: 'enabled' as const, budget_tokens: 1024 } };
    const first = await client.messages.stream({ ...body, ...settings }).finalMessage();
    t.match(first, {
      stop_reason: 'tool_use',
      content: [
        { type: 'thinking', signature: /.+/ },
        { type: 'tool_use', name: 'get_weather', input: { city: 'Oslo' } },
      ],
    });
    const call = first.content[1];
    const id = call?.type === 'tool_use' ? call.id : '';
    const second = await client.messages
      .stream({
        ...body,
        ...settings,
        messages: [
          ...body.messages,
          { role: 'assistant', content: first.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] },
        ],
      })
      .finalMessage();
    t.match(second.content, [
      { type: 'thinking' },
      { type: 'text', text: 'Simulated answer to: weather in Oslo\nTool result: rain' },
    ]);
    t.equal(second.stop_reason, 'end_turn');
    t.ok(second.usage.output_tokens > 0);
  });

  test(`${name} raises its error classes for what the simulator refuses`, async (t) => {
    const client = clientOf((await simulate(t)).url);
    const send = (content: string, more = {}): Promise<unknown> =>
      client.messages.create({ ...body, messages: [{ role: 'user', content }], ...more });
    const failure = (sent: Promise<unknown>): Promise<unknown> =>
      sent.then(
        () => null,
        (error) => error,
      );
    t.match(await failure(send('a', { model: 'nope' })), { status: 404, requestID: /^req_/ });
    t.match(await failure(send('[[fault:status=429 retry-after=7]] a')), { status: 429 });
    const stream = (await send('[[fault:error-event after=4]] a', {
      stream: true,
    })) as AsyncIterable<unknown>;
    await t.rejects(async () => {
      for await (const _ of stream) {
        t.ok(_);
      }
    }, /asked for an error/);
  });
}
