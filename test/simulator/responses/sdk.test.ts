import { test } from 'tap';
import { createClient, sdks } from '../../support/sdks/openai.js';
import { simulate } from '../../support/simulator.js';

const model = 'sim-text';
const input = [{ role: 'user' as const, content: 'weather in Oslo' }];
const tool = {
  type: 'function' as const,
  name: 'get_weather',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const settings = {
  tools: [tool],
  reasoning: { effort: 'high' as const, summary: 'auto' as const },
  include: ['reasoning.encrypted_content' as const],
};

for (const sdk of sdks) {
  test(`${sdk.name} creates and streams responses`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    const whole = await client.responses.create({ model, input: 'Hello there' });
    t.equal(whole.output_text, 'Simulated answer to: Hello there');
    let text = '';
    for await (const event of await client.responses.create({ model, input: 'Hello there', stream: true })) {
      text += event.type === 'response.output_text.delta' ? event.delta : '';
    }
    t.equal(text, whole.output_text);
    const long = 'Hello there, this is long enough to be cut at sixteen';
    const cut = await client.responses.create({ model, input: long, max_output_tokens: 16 });
    t.match(cut, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
  });

  test(`${sdk.name} helps through reasoning, a call and its output`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    const first = await client.responses.stream({ model, input, ...settings }).finalResponse();
    t.match(first.output, [
      { type: 'reasoning', encrypted_content: String },
      { type: 'function_call', name: 'get_weather', arguments: '{"city":"Oslo"}' },
    ]);
    const call = first.output.find(({ type }) => type === 'function_call');
    const second = await client.responses
      .stream({
        model,
        ...settings,
        input: [
          ...input,
          ...(first.output as unknown as typeof input),
          {
            type: 'function_call_output',
            call_id: call?.type === 'function_call' ? call.call_id : '',
            output: 'rain',
          },
        ],
      })
      .finalResponse();
    t.match(second.output, [
      { type: 'reasoning' },
      { content: [{ text: 'Simulated answer to: weather in Oslo\nTool result: rain' }] },
    ]);
    t.ok((second.usage?.output_tokens_details.reasoning_tokens ?? 0) > 0);
  });

  test(`${sdk.name} raises its error classes for what is refused or breaks off`, async (t) => {
    const simulator = await simulate(t);
    const client = createClient(sdk, simulator, { baseURL: simulator.url });
    await t.rejects(client.responses.create({ model: 'nope', input }), { code: 'model_not_found' });
    const stream = await client.responses.create({
      model,
      input: '[[fault:error-event after=5]] a',
      stream: true,
    });
    let seen = 0;
    await t.rejects(async () => {
      for await (const _ of stream) {
        seen += 1;
      }
    }, /asked for an error/);
    t.equal(seen, 5);
  });
}
