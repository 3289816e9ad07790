import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { createClient, helpers, raised, sdks } from '../support/sdks/openai.js';

const messages = [{ role: 'user' as const, content: 'weather in Oslo' }];
const answerText = 'Simulated answer to: weather in Oslo';

function functionTool(name: string) {
  return {
    type: 'function' as const,
    function: {
      name,
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  };
}

for (const sdk of sdks) {
  test(`${sdk.name}: models are listed, iterated and retrieved`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway);
    const page = await client.models.list();
    t.equal(page.object, 'list');
    t.strictSame(
      page.data.find((model) => model.id === 'sim-text'),
      { id: 'sim-text', object: 'model', created: gateway.created, owned_by: 'model-gateway' },
    );
    const names: string[] = [];
    for await (const model of client.models.list()) names.push(model.id);
    t.strictSame(
      names,
      page.data.map((model) => model.id),
    );
    t.equal(names.length, 9);
    t.match(await client.models.retrieve('sim-embedding'), { id: 'sim-embedding', object: 'model' });
    const error = await raised(sdk, client.models.retrieve('nope'));
    t.ok(error instanceof sdk.module.NotFoundError);
    t.equal(error.code, 'model_not_found');
  });

  test(`${sdk.name}: a completion has every field, and its request id is the gateway's`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const client = createClient(sdk, gateway);
    const { data, response } = await client.chat.completions
      .create({ model: 'sim-text', messages })
      .withResponse();
    t.match(data, {
      id: /^chatcmpl-/,
      object: 'chat.completion',
      model: 'sim-text',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          logprobs: null,
          message: { role: 'assistant', content: answerText, refusal: null },
        },
      ],
    });
    t.equal(data.choices.length, 1);
    t.type(data.created, 'number');
    const id = response.headers.get('x-request-id') ?? '';
    t.match(id, /^req_[0-9a-f]+$/);
    t.equal((data as { _request_id?: string })._request_id, id);
    t.match(response.headers.get('content-type'), /^application\/json/);
    t.equal(response.headers.get('x-gateway-path'), 'exact');
    t.match(response.headers.get('server-timing'), /auth;dur=.*upstream;dur=.*own;dur=/);

    const { usage } = data;
    if (usage === undefined) return t.fail('no usage');
    t.ok(usage.prompt_tokens > 0 && usage.completion_tokens > 0);
    t.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
    t.match((await gateway.linesUntil(id)).at(-1), {
      key: 'demo',
      protocol: 'chat',
      model: 'sim-text',
      status: 200,
      outcome: 'complete',
      inputTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    });
  });

  test(`${sdk.name}: several choices, a stop sequence and a length limit`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const three = await client.chat.completions.create({ model: 'sim-text', messages, n: 3 });
    t.strictSame(
      three.choices.map((choice) => [choice.index, choice.message.content]),
      [
        [0, answerText],
        [1, `${answerText} (answer 2)`],
        [2, `${answerText} (answer 3)`],
      ],
    );
    const stopped = await client.chat.completions.create({ model: 'sim-text', messages, stop: [' in Oslo'] });
    t.match(stopped.choices[0], {
      finish_reason: 'stop',
      message: { content: 'Simulated answer to: weather' },
    });
    const short = await client.chat.completions.create({
      model: 'sim-text',
      messages,
      max_completion_tokens: 2,
    });
    t.equal(short.choices[0]?.finish_reason, 'length');
    t.equal(short.usage?.completion_tokens, 2);
  });

  test(`${sdk.name}: a tool call and its result, and two calls at once`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const tools = [functionTool('get_weather'), functionTool('find_hotel')];
    const first = await client.chat.completions.create({ model: 'sim-text', messages, tools });
    const called = first.choices[0]?.message;
    t.equal(first.choices[0]?.finish_reason, 'tool_calls');
    t.match(called?.tool_calls, [
      { type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
    ]);
    if (called === undefined) return t.fail('no message');
    const second = await client.chat.completions.create({
      model: 'sim-text',
      tools,
      messages: [
        ...messages,
        called,
        { role: 'tool', tool_call_id: called.tool_calls?.[0]?.id ?? '', content: '4 degrees' },
      ],
    });
    t.match(second.choices[0], { finish_reason: 'stop', message: { content: /Tool result: 4 degrees$/ } });

    const asked = [{ role: 'user' as const, content: 'weather and hotel in Oslo' }];
    const both = await client.chat.completions.create({ model: 'sim-text', messages: asked, tools });
    const calls = both.choices[0]?.message.tool_calls ?? [];
    t.strictSame(
      calls.map((call) => (call.type === 'function' ? call.function.name : call.type)),
      ['get_weather', 'find_hotel'],
    );
    t.equal(new Set(calls.map((call) => call.id)).size, 2);
    const one = await client.chat.completions.create({
      model: 'sim-text',
      messages: asked,
      tools,
      parallel_tool_calls: false,
    });
    t.equal(one.choices[0]?.message.tool_calls?.length, 1);
  });

  test(`${sdk.name}: runTools calls the function and ends with the final text`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const seen: unknown[] = [];
    const runner = helpers(client).runTools({
      model: 'sim-text',
      messages,
      tools: [
        {
          type: 'function',
          function: {
            ...functionTool('get_weather').function,
            description: 'The weather in a city',
            parse: (text: string) => JSON.parse(text) as { readonly city: string },
            function: (given: { readonly city: string }) => {
              seen.push(given);
              return '4 degrees';
            },
          },
        },
      ],
    });
    t.equal(await runner.finalContent(), `${answerText}\nTool result: 4 degrees`);
    t.strictSame(seen, [{ city: 'Oslo' }]);
  });

  test(`${sdk.name}: parse gives output that fits its JSON schema`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const schema = {
      type: 'object',
      properties: {
        title: { type: 'string' },
        tags: { type: 'array', items: { enum: ['x', 'y'] }, minItems: 2 },
      },
      required: ['title', 'tags'],
      additionalProperties: false,
    };
    const parsed = await helpers(client).parse({
      model: 'sim-text',
      messages,
      response_format: sdk.makeParseableResponseFormat(
        { type: 'json_schema', json_schema: { name: 'note', schema, strict: true } },
        (text) => JSON.parse(text) as { title: string; tags: string[] },
      ),
    });
    t.strictSame(parsed.choices[0]?.message.parsed, { title: answerText, tags: ['x', 'x'] });
  });
}
