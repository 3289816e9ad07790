import { test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { eventually } from '../support/eventually.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { cancellingOnLeave } from '../support/leaving.js';
import { createClient, type Part, type Response, raised, sdks, textOf } from '../support/sdks/genai.js';

const answerText = 'Simulated answer to: weather in Oslo';
const kinds: readonly ServedBy[] = ['simulator', 'chat', 'messages'];
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [
  {
    functionDeclarations: ['get_weather', 'find_hotel'].map((name) => ({
      name,
      parametersJsonSchema: schema,
    })),
  },
];

const faults = ['error-event', 'reset', 'truncate', 'close', 'hang'] as const;

function withShortDeadlines(config: ResolvedConfig): ResolvedConfig {
  return { ...config, timeouts: { ...config.timeouts, firstByteMs: 4000, idleMs: 3000 } };
}

/** Reads a stream to its end. */
async function collect(stream: AsyncIterable<Response>, into: Response[] = []): Promise<Response[]> {
  for await (const response of stream) into.push(response);
  return into;
}

function asked(contents: string) {
  return { model: 'sim-text', contents };
}

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: a stream comes whole, with its reason and usage at its end`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const chunks = await collect(await models.generateContentStream(asked('weather in Oslo')));
      t.equal(textOf(chunks), answerText);
      t.ok(chunks.length > 1);
      const last = chunks.at(-1);
      t.equal(last?.candidates?.[0]?.finishReason, 'STOP');
      t.ok((last?.usageMetadata?.promptTokenCount ?? 0) > 0);
      t.ok((last?.usageMetadata?.candidatesTokenCount ?? 0) > 0);
      t.ok(chunks.slice(0, -1).every((chunk) => !chunk.candidates?.[0]?.finishReason));
      t.strictSame([...new Set(chunks.map((chunk) => chunk.modelVersion))], ['sim-text']);
      t.equal(new Set(chunks.map((chunk) => chunk.responseId)).size, 1);
      const short = await collect(
        await models.generateContentStream({ ...asked('weather in Oslo'), config: { maxOutputTokens: 2 } }),
      );
      t.equal(short.at(-1)?.candidates?.[0]?.finishReason, 'MAX_TOKENS');
    });

    test(`${served}: a streamed chat calls functions and goes on with what they gave`, async (t) => {
      const { chats } = createClient(sdk, await startGateway(t, { demo: kind }));
      for (const includeThoughts of [false, true]) {
        const chat = chats.create({
          model: 'sim-text',
          config: {
            tools,
            ...(includeThoughts ? { thinkingConfig: { includeThoughts, thinkingBudget: 2048 } } : {}),
          },
        });
        const first = await collect(await chat.sendMessageStream({ message: 'weather and hotel in Oslo' }));
        const calls = first.flatMap((chunk) => chunk.functionCalls ?? []);
        t.match(calls, [
          { name: 'get_weather', args: { city: 'Oslo' } },
          { name: 'find_hotel', args: { city: 'Oslo' } },
        ]);
        const parts = first.flatMap((chunk) => chunk.candidates?.[0]?.content?.parts ?? []);
        const thoughts = parts.map((part) => (part.thought ? (part.text ?? '') : '')).join('');
        if (includeThoughts) t.match(thoughts, /^Simulated reasoning/);
        else t.equal(thoughts, '');
        const message = calls.map(
          ({ id, name }): Part => ({ functionResponse: { id, name, response: { result: '4 degrees' } } }),
        );
        const second = await collect(await chat.sendMessageStream({ message }));
        t.equal(textOf(second).match(/Tool result: .*4 degrees/g)?.length, 2);
        const third = await collect(await chat.sendMessageStream({ message: 'thanks' }));
        t.match(textOf(third), /answer to: thanks$/);
      }
    });

    test(`${served}: what an upstream may do to a stream's bytes changes nothing for the reader`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const unicode = 'žluťoučký 漢字 👩‍👩‍👧 \u2028 "\\';
      for (const fault of ['slow-bytes', 'gzip', 'until-close', 'early-hints', 'drop']) {
        const content = `[[fault:${fault}]] ${unicode}`;
        const chunks = await collect(await models.generateContentStream(asked(content)));
        t.equal(textOf(chunks), `Simulated answer to: ${content}`, fault);
      }
    });

    test(`${served}: a reader that leaves cancels its upstream request`, async (t) => {
      const gateway = await startGateway(t, { demo: kind, adapt: cancellingOnLeave });
      const { simulator } = gateway;
      const { models } = createClient(sdk, gateway);
      const controller = new AbortController();
      const stream = await models.generateContentStream({
        ...asked('[[fault:hang after=6]] weather in Oslo'),
        config: { abortSignal: controller.signal },
      });
      await t.rejects(async () => {
        for await (const _ of stream) controller.abort();
      });
      await eventually(
        () => simulator.state().cancelledRequests === 1 && simulator.state().openRequests === 0,
      );
    });
  }
}

for (const kind of kinds) {
  test(`on ${kind}: a stream that breaks raises, from version 2 on the error that the gateway tells, after what has come`, async (t) => {
    const gateway = await startGateway(t, { demo: kind, adapt: withShortDeadlines });
    const cases = sdks.flatMap((sdk) =>
      faults.map((fault) => ({ sdk, fault, name: `${sdk.name}, ${fault}` })),
    );
    await Promise.all(
      cases.map(async ({ sdk, fault, name }) => {
        const { models } = createClient(sdk, gateway);
        const chunks: Response[] = [];
        // The first events of a messages upstream hold no text yet.
        const content = `[[fault:${fault} after=6]] weather in Oslo`;
        const stream = await models.generateContentStream(asked(content));
        if (sdk.raisesMidStream) {
          t.ok((await raised(sdk, collect(stream, chunks))).status >= 500, `${name}: has a status`);
          t.ok(textOf(chunks).startsWith('Simulated'), `${name}: after texts`);
        } else await t.rejects(collect(stream, chunks), { message: 'terminated' }, name);
        const ended = chunks.some((chunk) => chunk.candidates?.[0]?.finishReason);
        t.notOk(ended, `${name}: does not look like an end`);
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
  const content = '[[fault:silent=2.2 after=2]] a';
  const raw = fetch(`${gateway.url}/v1beta/models/sim-text:streamGenerateContent?alt=sse&key=sk-demo`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: content }] }] }),
  });
  await Promise.all(
    sdks.map(async (sdk) => {
      const { models } = createClient(sdk, gateway);
      const chunks = await collect(await models.generateContentStream(asked(content)));
      t.equal(textOf(chunks), `Simulated answer to: ${content}`, sdk.name);
    }),
  );
  t.match(await (await raw).text(), /\n\n: keep-alive\n\n/);
});
