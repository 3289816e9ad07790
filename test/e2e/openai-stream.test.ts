import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { cancellingOnLeave } from '../support/leaving.js';
import { type Chunk, collect, createClient, helpers, raised, sdks } from '../support/sdks/openai.js';

const answerText = 'Simulated answer to: weather in Oslo';

/** A streamed request with one user text. */
function asked(content: string) {
  return { model: 'sim-text', stream: true as const, messages: [{ role: 'user' as const, content }] };
}

function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
}

for (const sdk of sdks) {
  test(`${sdk.name}: a stream comes whole, without the usage that nobody asked for`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator' });
    const { data, response } = await createClient(sdk, gateway)
      .chat.completions.create(asked('weather in Oslo'))
      .withResponse();
    const chunks = await collect(data);
    t.equal(textOf(chunks), answerText);
    t.equal(chunks[0]?.choices[0]?.delta.role, 'assistant');
    t.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'stop');
    t.ok(chunks.every((chunk) => chunk.object === 'chat.completion.chunk'));
    t.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
    t.ok(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage));
    t.match(response.headers.get('content-type'), /^text\/event-stream/);
    t.equal(response.headers.get('x-gateway-path'), 'spliced');
    const line = (await gateway.linesUntil(response.headers.get('x-request-id') ?? '')).at(-1);
    t.match(line, { outcome: 'complete', status: 200 });
    t.ok(
      Number(line?.inputTokens) > 0 && Number(line?.outputTokens) > 0,
      'the gateway has read it all the same',
    );
  });

  test(`${sdk.name}: a stream ends with its usage if asked to`, async (t) => {
    const { data, response } = await createClient(sdk, await startGateway(t, { demo: 'simulator' }))
      .chat.completions.create({ ...asked('weather in Oslo'), stream_options: { include_usage: true } })
      .withResponse();
    const chunks = await collect(data);
    t.equal(textOf(chunks), answerText);
    const last = chunks.at(-1);
    t.strictSame(last?.choices, []);
    t.ok(last?.usage && last.usage.total_tokens > last.usage.completion_tokens);
    t.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
    t.equal(response.headers.get('x-gateway-path'), 'exact');
  });

  test(`${sdk.name}: the stream helper puts text, choices and tool calls together`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const text = helpers(client).stream({ model: 'sim-text', messages: asked('weather in Oslo').messages });
    const deltas: string[] = [];
    text.on('content', (delta) => deltas.push(delta));
    t.equal(await text.finalContent(), answerText);
    t.equal(deltas.join(''), answerText);

    const tool = (name: string) => ({
      type: 'function' as const,
      function: {
        name,
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    });
    const called = helpers(client).stream({
      model: 'sim-text',
      messages: asked('weather and hotel in Oslo').messages,
      tools: [tool('get_weather'), tool('find_hotel')],
      stream_options: { include_usage: true },
    });
    const final = await called.finalChatCompletion();
    t.match(final.choices[0], {
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        tool_calls: [
          { type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
          { type: 'function', function: { name: 'find_hotel', arguments: '{"city":"Oslo"}' } },
        ],
      },
    });
    t.ok((final.usage?.total_tokens ?? 0) > 0);

    const two = helpers(client).stream({
      model: 'sim-text',
      messages: asked('weather in Oslo').messages,
      n: 2,
    });
    t.strictSame(
      (await two.finalChatCompletion()).choices.map((choice) => choice.message.content),
      [answerText, `${answerText} (answer 2)`],
    );
  });

  test(`${sdk.name}: what an upstream may do to a stream's bytes changes nothing for the reader`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const read = async (content: string) =>
      textOf(await collect(await client.chat.completions.create(asked(content))));
    const unicode = 'žluťoučký 漢字 👩‍👩‍👧 \u2028 "\\';
    for (const fault of ['rate=0', 'slow-bytes', 'gzip', 'until-close', 'early-hints', 'drop']) {
      const content = `[[fault:${fault}]] ${unicode}`;
      t.equal(await read(content), `Simulated answer to: ${content}`, fault);
    }
    const whole = await client.chat.completions.create({
      ...asked(`[[fault:slow-bytes]] [[fault:gzip]] ${unicode}`),
      stream: false,
    });
    t.ok(whole.choices[0]?.message.content?.endsWith(unicode));
  });

  test(`${sdk.name}: a long stream comes whole`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const chunks = await collect(await client.chat.completions.create(asked('[[fault:long=3000]] a')));
    t.ok(chunks.length > 1000);
    const text = textOf(chunks);
    t.ok(/^Simulated answer to: .* a( simulated words)+$/.test(text));
    const whole = await client.chat.completions.create({ ...asked('[[fault:long=3000]] a'), stream: false });
    t.equal(whole.choices[0]?.message.content, text);
  });

  test(`${sdk.name}: a reader that leaves cancels its upstream request`, async (t) => {
    const gateway = await startGateway(t, { demo: 'simulator', adapt: cancellingOnLeave });
    const { simulator } = gateway;
    const client = createClient(sdk, gateway);
    const cancelled = (count: number) =>
      eventually(() => simulator.state().cancelledRequests === count && simulator.state().openRequests === 0);

    const controller = new AbortController();
    const stream = await client.chat.completions.create(asked('[[fault:hang after=2]] a'), {
      signal: controller.signal,
    });
    let seen = 0;
    for await (const _ of stream) {
      seen += 1;
      if (seen === 2) controller.abort();
    }
    t.equal(seen, 2);
    await cancelled(1);

    for await (const _ of await client.chat.completions.create(asked('[[fault:hang after=2]] a'))) break;
    await cancelled(2);

    const early = new AbortController();
    const waiting = client.chat.completions.create(
      { ...asked('[[fault:hang]] a'), stream: false },
      { signal: early.signal },
    );
    const error = raised(sdk, waiting);
    await eventually(() => simulator.state().openRequests === 1);
    early.abort();
    t.ok((await error) instanceof sdk.module.APIUserAbortError);
    await cancelled(3);

    const { response } = await client.models.list().withResponse();
    const lines = await gateway.linesUntil(response.headers.get('x-request-id') ?? '');
    t.equal(lines.filter((line) => line.outcome === 'client_gone').length, 3);
  });
}

test('silence in a stream is filled with comments that no version of the SDK minds', async (t) => {
  const gateway = await startGateway(t, {
    demo: 'simulator',
    adapt: (config) => ({
      ...config,
      timeouts: { ...config.timeouts, keepAliveMs: 100 },
    }),
  });
  const contents = ['[[fault:silent=2.2 after=2]] a', '[[fault:latency=2200]] a'];
  await Promise.all(
    sdks.flatMap((sdk) =>
      contents.map(async (content) => {
        let body = Promise.resolve('');
        const client = createClient(sdk, gateway, {
          fetch: async (...given) => {
            const response = await fetch(...given);
            body = response.clone().text();
            return response;
          },
        });
        const chunks = await collect(await client.chat.completions.create(asked(content)));
        t.equal(textOf(chunks), `Simulated answer to: ${content}`, `${sdk.name}, ${content}`);
        t.match(await body, /(^|\n\n): keep-alive\n\n/);
      }),
    ),
  );
});
