import { test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { eventually } from '../support/eventually.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { cancellingOnLeave } from '../support/leaving.js';
import { collect, createClient, raised, sdks } from '../support/sdks/openai.js';
import {
  callsOf,
  functionTool,
  type InputItem,
  inputOf,
  type ResponseEvent,
  resultsOf,
  textOf,
} from '../support/sdks/openai-responses.js';

const answerText = 'Simulated answer to: weather in Oslo';
const kinds: readonly ServedBy[] = ['simulator', 'chat', 'messages', 'generateContent'];

const faults = ['error-event', 'reset', 'truncate', 'close', 'hang'] as const;

function withShortDeadlines(config: ResolvedConfig): ResolvedConfig {
  return { ...config, timeouts: { ...config.timeouts, firstByteMs: 4000, idleMs: 3000 } };
}

function asked(input: string) {
  return { model: 'sim-text', input, stream: true as const };
}

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: a raw stream has its events in order, numbered`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const events = await collect(await client.responses.create(asked('weather in Oslo')));
      const types: string[] = events.map((event) => event.type);
      t.strictSame(types.slice(0, 4), [
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.content_part.added',
      ]);
      t.strictSame(types.slice(-4), [
        'response.output_text.done',
        'response.content_part.done',
        'response.output_item.done',
        'response.completed',
      ]);
      t.ok(types.slice(4, -4).every((type) => type === 'response.output_text.delta'));
      t.strictSame(
        events.map((event) => (event as { sequence_number: number }).sequence_number),
        events.map((_, index) => index),
      );
      const text = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''));
      t.equal(text.join(''), answerText);
      t.match(events.at(-1), {
        response: { model: 'sim-text', status: 'completed', usage: { total_tokens: Number } },
      });
    });

    test(`${served}: the stream helper puts a text together`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      let text = '';
      const stream = client.responses.stream({ model: 'sim-text', input: 'weather in Oslo' });
      stream.on('response.output_text.delta', (event) => {
        text += event.delta;
      });
      const final = await stream.finalResponse();
      t.equal(text, answerText);
      t.equal(textOf(final), answerText);
      t.match(final, { id: /^resp_/, status: 'completed', model: 'sim-text' });
    });

    test(`${served}: the stream helper puts reasoning and calls together, and they go back`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const settings = {
        model: 'sim-text',
        store: false,
        include: ['reasoning.encrypted_content' as const],
        reasoning: { effort: 'low' as const, summary: 'auto' as const },
        tools: [functionTool('get_weather'), functionTool('find_hotel')],
      };
      const input: InputItem[] = [{ role: 'user', content: 'weather and hotel in Oslo' }];
      let json = '';
      const stream = client.responses.stream({ ...settings, input });
      stream.on('response.function_call_arguments.delta', (event) => {
        json += event.delta;
      });
      const first = await stream.finalResponse();
      t.equal(json, '{"city":"Oslo"}{"city":"Oslo"}');
      t.match(first.output[0], {
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: /^Simulated reasoning/ }],
      });
      t.match(callsOf(first), [
        { name: 'get_weather', arguments: '{"city":"Oslo"}', status: 'completed' },
        { name: 'find_hotel', arguments: '{"city":"Oslo"}', status: 'completed' },
      ]);
      input.push(...inputOf(first.output), ...resultsOf(first, 'fine'));
      const second = await client.responses.stream({ ...settings, input }).finalResponse();
      t.equal(textOf(second).match(/Tool result: .*fine/g)?.length, 2);
      input.push(...inputOf(second.output), { role: 'user', content: 'thanks' });
      const third = await client.responses.stream({ ...settings, input }).finalResponse();
      t.match(textOf(third), /answer to: thanks$/);
    });

    test(`${served}: a stream whose limit is hit ends incomplete`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const events = await collect(
        await client.responses.create({ ...asked('[[fault:long=100]] a'), max_output_tokens: 20 }),
      );
      t.match(events.at(-1), {
        type: 'response.incomplete',
        response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      });
    });

    test(`${served}: what an upstream may do to a stream's bytes changes nothing for the reader`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const unicode = 'žluťoučký 漢字 👩‍👩‍👧 \u2028 "\\';
      for (const fault of ['slow-bytes', 'gzip', 'until-close', 'early-hints', 'drop']) {
        const input = `[[fault:${fault}]] ${unicode}`;
        const final = await client.responses.stream({ model: 'sim-text', input }).finalResponse();
        t.equal(textOf(final), `Simulated answer to: ${input}`, fault);
      }
    });

    test(`${served}: a reader that leaves cancels its upstream request`, async (t) => {
      const gateway = await startGateway(t, { demo: kind, adapt: cancellingOnLeave });
      const { simulator } = gateway;
      const client = createClient(sdk, gateway);
      for await (const _ of await client.responses.create(asked('[[fault:hang after=6]] a'))) break;
      await eventually(
        () => simulator.state().cancelledRequests === 1 && simulator.state().openRequests === 0,
      );
    });
  }
}

for (const kind of kinds) {
  test(`on ${kind}: a stream that breaks raises in every version after what has come`, async (t) => {
    const gateway = await startGateway(t, { demo: kind, adapt: withShortDeadlines });
    const cases = sdks.flatMap((sdk) =>
      faults.map((fault) => ({ sdk, fault, name: `${sdk.name}, ${fault}` })),
    );
    await Promise.all(
      cases.map(async ({ sdk, fault, name }) => {
        const client = createClient(sdk, gateway);
        const events: ResponseEvent[] = [];
        const stream = await client.responses.create(asked(`[[fault:${fault} after=6]] weather in Oslo`));
        t.match((await raised(sdk, collect(stream, events))).message, /./, name);
        const types = events.map((event) => event.type);
        t.ok(types.includes('response.output_text.delta'), `${name}: after texts`);
        t.notOk(types.includes('response.completed'), `${name}: does not look like an end`);
      }),
    );
  });

  test(`on ${kind}: an upstream that fails before its first event raises an error status`, async (t) => {
    const gateway = await startGateway(t, { demo: kind, adapt: withShortDeadlines });
    const early = [
      ['status=429', 429, 'rate_limit_exceeded'],
      ['status=503', 503, null],
      ['error-event', 502, 'upstream_error'],
      ['reset', 502, 'upstream_error'],
      ['close after=0', 502, 'upstream_error'],
      ['hang', 504, 'upstream_timeout'],
      ['wrong-protocol', 502, 'unsupported_stream_event'],
    ] as const;
    const cases = sdks.flatMap((sdk) => early.map((fault) => ({ sdk, fault })));
    await Promise.all(
      cases.map(async ({ sdk, fault: [fault, status, code] }) => {
        const client = createClient(sdk, gateway);
        const error = await raised(sdk, client.responses.create(asked(`[[fault:${fault}]] a`)));
        t.equal(error.status, status, `${sdk.name}, ${fault}`);
        if (code !== null) t.equal(error.code, code, `${sdk.name}, ${fault}`);
      }),
    );
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
  await Promise.all(
    sdks.map(async (sdk) => {
      let body = Promise.resolve('');
      const client = createClient(sdk, gateway, {
        fetch: async (...given) => {
          const response = await fetch(...given);
          body = response.clone().text();
          return response;
        },
      });
      const input = '[[fault:silent=2.2 after=5]] a';
      const final = await client.responses.stream({ model: 'sim-text', input }).finalResponse();
      t.equal(textOf(final), `Simulated answer to: ${input}`, sdk.name);
      t.match(await body, /\n\n: keep-alive\n\n/);
    }),
  );
});
