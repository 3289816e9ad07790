import { test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { eventually } from '../support/eventually.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { cancellingOnLeave } from '../support/leaving.js';
import {
  createClient,
  type Message,
  type MessageParam,
  raised,
  type StreamEvent,
  sdks,
  textOf,
} from '../support/sdks/anthropic.js';

const answerText = 'Simulated answer to: weather in Oslo';
const kinds: readonly ServedBy[] = ['simulator', 'chat', 'generateContent'];

const faults = ['error-event', 'reset', 'truncate', 'close', 'hang'] as const;

function withShortDeadlines(config: ResolvedConfig): ResolvedConfig {
  return { ...config, timeouts: { ...config.timeouts, firstByteMs: 4000, idleMs: 3000 } };
}

/** Reads a stream to its end. */
async function collect(
  stream: AsyncIterable<StreamEvent>,
  into: StreamEvent[] = [],
): Promise<readonly StreamEvent[]> {
  for await (const event of stream) into.push(event);
  return into;
}

/** A request with one user text. */
function asked(content: string) {
  return { model: 'sim-text', max_tokens: 4096, messages: [{ role: 'user' as const, content }] };
}

function tool(name: string) {
  return {
    name,
    input_schema: {
      type: 'object' as const,
      properties: { city: { type: 'string' } },
      required: ['city'],
    },
  };
}

function results(message: Message, content: string): MessageParam {
  return {
    role: 'user',
    content: message.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content }] : [],
    ),
  };
}

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: the stream helper puts a text together`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const deltas: string[] = [];
      const stream = client.messages.stream(asked('weather in Oslo')).on('text', (text) => deltas.push(text));
      const final = await stream.finalMessage();
      t.equal(textOf(final), answerText);
      t.equal(await stream.finalText(), answerText);
      t.equal(deltas.join(''), answerText);
      t.ok(deltas.length > 1);
      t.match(final, { id: /^msg_/, model: 'sim-text', role: 'assistant', stop_reason: 'end_turn' });
      t.ok(final.usage.input_tokens > 0 && final.usage.output_tokens > 0);
      t.match(stream.request_id, /^req_/);
      const short = client.messages.stream({ ...asked('weather in Oslo'), max_tokens: 2 });
      t.match(await short.finalMessage(), { stop_reason: 'max_tokens', usage: { output_tokens: 2 } });
    });

    test(`${served}: a raw stream has its events in order`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const { data, response } = await client.messages
        .create({ ...asked('weather in Oslo'), stream: true })
        .withResponse();
      t.match(response.headers.get('content-type'), /^text\/event-stream/);
      const events = await collect(data);
      const types = events.map((event) => event.type);
      t.strictSame(types.slice(0, 2), ['message_start', 'content_block_start']);
      t.strictSame(types.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
      t.ok(types.slice(2, -3).every((type) => type === 'content_block_delta'));
    });

    test(`${served}: the stream helper puts thinking and tool calls together, and they go back`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const settings = {
        model: 'sim-text',
        max_tokens: 8192,
        thinking: { type: 'enabled' as const, budget_tokens: 2048 },
        tools: [tool('get_weather'), tool('find_hotel')],
      };
      const messages: MessageParam[] = [{ role: 'user', content: 'weather and hotel in Oslo' }];
      let json = '';
      let thinking = '';
      const stream = client.messages
        .stream({ ...settings, messages })
        .on('inputJson', (part) => {
          json += part;
        })
        .on('thinking', (part) => {
          thinking += part;
        });
      const first = await stream.finalMessage();
      t.match(first, {
        stop_reason: 'tool_use',
        content: [
          { type: 'thinking', thinking: /^Simulated reasoning/, signature: String },
          { type: 'tool_use', name: 'get_weather', input: { city: 'Oslo' } },
          { type: 'tool_use', name: 'find_hotel', input: { city: 'Oslo' } },
        ],
      });
      t.equal(json, '{"city":"Oslo"}{"city":"Oslo"}');
      t.match(first.content[0], { thinking });
      messages.push({ role: 'assistant', content: first.content }, results(first, 'fine'));
      const second = await client.messages.stream({ ...settings, messages }).finalMessage();
      t.equal(textOf(second).match(/Tool result: .*fine/g)?.length, 2);
      messages.push({ role: 'assistant', content: second.content }, { role: 'user', content: 'thanks' });
      const third = await client.messages.stream({ ...settings, messages }).finalMessage();
      t.match(textOf(third), /answer to: thanks$/);
    });

    test(`${served}: what an upstream may do to a stream's bytes changes nothing for the reader`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const unicode = 'žluťoučký 漢字 👩‍👩‍👧 \u2028 "\\';
      for (const fault of ['slow-bytes', 'gzip', 'until-close', 'early-hints', 'drop']) {
        const content = `[[fault:${fault}]] ${unicode}`;
        const text = await client.messages.stream(asked(content)).finalText();
        t.equal(text, `Simulated answer to: ${content}`, fault);
      }
    });

    test(`${served}: a reader that leaves cancels its upstream request`, async (t) => {
      const gateway = await startGateway(t, { demo: kind, adapt: cancellingOnLeave });
      const { simulator } = gateway;
      const client = createClient(sdk, gateway);
      const cancelled = (count: number) =>
        eventually(
          () => simulator.state().cancelledRequests === count && simulator.state().openRequests === 0,
        );

      const stream = client.messages.stream(asked('[[fault:hang after=6]] weather in Oslo'));
      stream.on('text', () => stream.abort());
      const error = await raised(sdk, stream.finalMessage());
      t.ok(error instanceof sdk.module.APIUserAbortError);
      await cancelled(1);

      const events = await client.messages.create({ ...asked('[[fault:hang after=6]] a'), stream: true });
      for await (const _ of events) break;
      await cancelled(2);

      const early = new AbortController();
      const waiting = raised(
        sdk,
        client.messages.create(asked('[[fault:hang]] a'), { signal: early.signal }),
      );
      await eventually(() => simulator.state().openRequests === 1);
      early.abort();
      t.ok((await waiting) instanceof sdk.module.APIUserAbortError);
      await cancelled(3);
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
        // The first event of a messages upstream holds no text yet.
        const content = `[[fault:${fault} after=6]] weather in Oslo`;
        const texts: string[] = [];
        const stream = client.messages.stream(asked(content)).on('text', (text) => texts.push(text));
        const error = await raised(sdk, stream.finalMessage());
        t.match(error.error, { type: 'error', error: { type: String, message: String } }, name);
        t.ok(texts.length > 0, `${name}: after texts`);
        const events: StreamEvent[] = [];
        await raised(sdk, collect(await client.messages.create({ ...asked(content), stream: true }), events));
        t.ok(events.length > 1, `${name}: after events`);
        t.not(events.at(-1)?.type, 'message_stop', name);
      }),
    );
  });
}

test('silence in a stream is filled with what no version of the SDK minds', async (t) => {
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
      const content = '[[fault:silent=2.2 after=4]] a';
      t.equal(await client.messages.stream(asked(content)).finalText(), `Simulated answer to: ${content}`);
      t.match(await body, /\n\nevent: ping\ndata: {"type":"ping"}\n\n/, sdk.name);
    }),
  );
});
