import { test } from 'tap';
import { pixel } from '../suites/translation/image.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { bodyOf, createClient, type Part, raised, sdks } from '../support/sdks/genai.js';

const answerText = 'Simulated answer to: weather in Oslo';
const kinds = ['simulator', 'chat', 'messages'] as const satisfies readonly ServedBy[];
/** Where each upstream finds the signature of its own reasoning, or the reasoning itself, which chat does not sign. */
const signatures = {
  simulator: /"thoughtSignature":"/,
  chat: /"reasoning_content":"Simulated reasoning/,
  messages: /"signature":"/,
};

function declaration(name: string) {
  return {
    name,
    description: `Calls ${name}`,
    parametersJsonSchema: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    },
  };
}
const tools = [{ functionDeclarations: [declaration('get_weather'), declaration('find_hotel')] }];

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: an answer has every field`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      for (const model of ['sim-text', 'models/sim-text']) {
        const answer = await models.generateContent({ model, contents: 'weather in Oslo' });
        t.equal(answer.text, answerText);
        t.match(answer, {
          candidates: [{ content: { role: 'model', parts: [{ text: answerText }] }, finishReason: 'STOP' }],
          modelVersion: 'sim-text',
          responseId: String,
        });
        const usage = answer.usageMetadata;
        const parts = [usage?.promptTokenCount ?? 0, usage?.candidatesTokenCount ?? 0];
        t.ok(parts.every((count) => count > 0));
        t.equal(usage?.totalTokenCount, (parts[0] ?? 0) + (parts[1] ?? 0));
      }
    });

    test(`${served}: settings reach the model`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const stopped = await models.generateContent({
        model: 'sim-text',
        contents: 'weather in Oslo',
        config: {
          systemInstruction: 'Be brief.',
          temperature: 0.5,
          topK: 5,
          stopSequences: [' in Oslo'],
          safetySettings: [],
        },
      });
      t.equal(stopped.text, 'Simulated answer to: weather');
      t.equal(stopped.candidates?.[0]?.finishReason, 'STOP');
      const short = await models.generateContent({
        model: 'sim-text',
        contents: 'weather in Oslo',
        config: { maxOutputTokens: 2 },
      });
      t.equal(short.candidates?.[0]?.finishReason, 'MAX_TOKENS');
      t.equal(short.usageMetadata?.candidatesTokenCount, 2);
      const seen = await models.generateContent({
        model: 'sim-text',
        contents: [{ inlineData: { mimeType: 'image/png', data: pixel } }, 'what is this'],
      });
      t.equal(seen.text, 'Simulated answer to: what is this (1 image)');
      const two = models.generateContent({
        model: 'sim-text',
        contents: 'weather in Oslo',
        config: { candidateCount: 2 },
      });
      if (kind === 'messages') {
        const { status, message } = bodyOf(await raised(sdk, two));
        t.match([status, message], ['INVALID_ARGUMENT', /generationConfig\.candidateCount/]);
      } else {
        const texts = (await two).candidates?.map((candidate) => candidate.content?.parts?.[0]?.text);
        t.strictSame(texts, [answerText, `${answerText} (answer 2)`]);
      }
    });

    test(`${served}: output that fits a schema of either kind`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const { Type } = sdk.module;
      const schemas = [
        {
          responseSchema: {
            type: Type.OBJECT,
            properties: {
              title: { type: Type.STRING, nullable: true },
              tags: { type: Type.ARRAY, items: { type: Type.STRING }, minItems: '2' },
            },
            required: ['title', 'tags'],
          },
        },
        {
          responseJsonSchema: {
            type: 'object',
            properties: {
              title: { type: 'string' },
              tags: { type: 'array', items: { type: 'string' }, minItems: 2 },
            },
            required: ['title', 'tags'],
            additionalProperties: false,
          },
        },
      ];
      for (const schema of schemas) {
        const answer = await models.generateContent({
          model: 'sim-text',
          contents: 'weather in Oslo',
          config: { responseMimeType: 'application/json', ...schema },
        });
        t.match(JSON.parse(answer.text ?? ''), { title: answerText, tags: [String, String] });
      }
    });

    test(`${served}: a chat calls functions and goes on with what they gave`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const { chats } = createClient(sdk, gateway);
      for (const includeThoughts of [false, true]) {
        const chat = chats.create({
          model: 'sim-text',
          config: {
            tools,
            ...(includeThoughts ? { thinkingConfig: { includeThoughts, thinkingBudget: 2048 } } : {}),
          },
        });
        const first = await chat.sendMessage({ message: 'weather and hotel in Oslo' });
        t.match(first.functionCalls, [
          { name: 'get_weather', args: { city: 'Oslo' } },
          { name: 'find_hotel', args: { city: 'Oslo' } },
        ]);
        t.equal(first.candidates?.[0]?.finishReason, 'STOP');
        const thoughts = (first.candidates?.[0]?.content?.parts ?? []).filter((part) => part.thought);
        t.equal(thoughts.length, includeThoughts ? 1 : 0);
        const results = (first.functionCalls ?? []).map(
          ({ id, name }): Part => ({ functionResponse: { id, name, response: { result: '4 degrees' } } }),
        );
        const second = await chat.sendMessage({ message: results });
        t.equal(second.text?.match(/Tool result: .*4 degrees/g)?.length, 2);
        const sent = gateway.simulator.lastRequest()?.body.toString();
        if (includeThoughts) t.match(sent, signatures[kind]);
        t.notMatch(sent, /gw1\./, 'in its own form');
        const third = await chat.sendMessage({ message: 'thanks' });
        t.match(third.text, /answer to: thanks$/);
        t.equal(chat.getHistory().length, 6);
      }
    });

    test(`${served}: a callable tool is called and its result sent on`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const seen: unknown[] = [];
      const callable = {
        tool: async () => ({ functionDeclarations: [declaration('get_weather')] }),
        callTool: async (
          calls: readonly { id?: string; name?: string; args?: unknown }[],
        ): Promise<Part[]> => {
          seen.push(...calls.map((call) => call.args));
          return calls.map(({ id, name }) => ({
            functionResponse: { id, name, response: { result: '4 degrees' } },
          }));
        },
      };
      const answer = await models.generateContent({
        model: 'sim-text',
        contents: 'weather in Oslo',
        config: { tools: [callable] },
      });
      t.match(answer.text, /Tool result: .*4 degrees/);
      t.strictSame(seen, [{ city: 'Oslo' }]);
    });

    test(`${served}: function calls are forced and forbidden`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const { FunctionCallingConfigMode: Mode } = sdk.module;
      const ask = (functionCallingConfig: { mode: string; allowedFunctionNames?: string[] }) =>
        models.generateContent({
          model: 'sim-text',
          contents: 'weather in Oslo',
          config: {
            tools,
            toolConfig: { functionCallingConfig: functionCallingConfig as { mode: typeof Mode.ANY } },
          },
        });
      const forced = await ask({ mode: Mode.ANY, allowedFunctionNames: ['find_hotel'] });
      t.match(forced.functionCalls, [{ name: 'find_hotel' }]);
      t.equal((await ask({ mode: Mode.NONE })).text, answerText);
    });

    test(`${served}: tokens are counted`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const { models } = createClient(sdk, gateway);
      const few = await models.countTokens({ model: 'sim-text', contents: 'weather in Oslo' });
      const many = await models.countTokens({ model: 'sim-text', contents: 'weather in Oslo '.repeat(100) });
      t.ok((few.totalTokens ?? 0) > 0);
      t.ok((many.totalTokens ?? 0) > (few.totalTokens ?? 0) * 10);
      t.equal(gateway.simulator.state().totalRequests, kind === 'simulator' ? 2 : 0);
    });
  }

  test(`${sdk.name}: models are listed page by page and retrieved`, async (t) => {
    const { models } = createClient(
      sdk,
      await startGateway(t, {
        demo: 'simulator',
        adapt: (config) => {
          const first = config.models.find((model) => model.name === 'sim-text');
          if (first === undefined) return config;
          const more = Array.from({ length: 5 }, (_, index) => ({ ...first, name: `model-${index}` }));
          return { ...config, models: [...config.models, ...more] };
        },
      }),
    );
    const names: (string | undefined)[] = [];
    for await (const model of await models.list({ config: { pageSize: 3 } })) names.push(model.name);
    t.strictSame(names, [
      ...Array.from({ length: 5 }, (_, index) => `models/model-${index}`),
      'models/sim-embedding',
      'models/sim-image',
      'models/sim-text',
    ]);
    t.match(await models.get({ model: 'sim-text' }), { name: 'models/sim-text', displayName: 'sim-text' });
    t.equal((await raised(sdk, models.get({ model: 'nope' }))).status, 404);
  });
}

test("a client of a project in the vendor's cloud has a key of the gateway in place of a token", async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'weather in Oslo' }] }] });
  const ask = (path: string) => postJson(url + path, body, { authorization: 'Bearer sk-demo' });
  for (const version of ['/v1beta1', '/v1']) {
    const models = `${version}/projects/my-project/locations/global/publishers/google/models`;
    const whole = await ask(`${models}/sim-text:generateContent`);
    t.match(await whole.json(), { candidates: [{ content: { parts: [{ text: answerText }] } }] });
    const streamed = await ask(`${models}/sim-text:streamGenerateContent?alt=sse`);
    t.match(await streamed.text(), /"finishReason":"STOP"/);
    const unknown = await ask(`${models}/sim-text:rawPredict`);
    t.match(await unknown.json(), { error: { code: 404, status: 'NOT_FOUND' } });
    const other = await ask(`${version}/projects/my-project/locations/global/endpoints/5:generateContent`);
    t.match(await other.json(), { error: { code: 404, status: 'NOT_FOUND' } });
  }
});

for (const sdk of sdks) {
  test(`${sdk.name}: under the version of what is new`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const httpOptions = { baseUrl: url, apiVersion: 'v1alpha' };
    const { models } = new sdk.module.GoogleGenAI({ apiKey: 'sk-demo', httpOptions });
    const call = { model: 'sim-text', contents: 'weather in Oslo' };
    t.equal((await models.generateContent(call)).text, answerText);
    const pieces: string[] = [];
    for await (const { text } of await models.generateContentStream(call)) pieces.push(text ?? '');
    t.equal(pieces.join(''), answerText);
    const unknown = await raised(sdk, models.generateContent({ model: 'none', contents: 'a' }));
    t.match(bodyOf(unknown), { code: 404, status: 'NOT_FOUND' });
  });
}

for (const sdk of sdks) {
  for (const apiVersion of ['v1beta1', 'v1']) {
    test(`${sdk.name}: as a client of the vendor's cloud with a key, ${apiVersion}`, async (t) => {
      const { url } = await startGateway(t, { demo: 'simulator' });
      const httpOptions = { baseUrl: url, apiVersion };
      const { models } = new sdk.module.GoogleGenAI({ vertexai: true, apiKey: 'sk-demo', httpOptions });
      for (const model of ['sim-text', 'google/sim-text', 'publishers/google/models/sim-text']) {
        const whole = await models.generateContent({ model, contents: 'weather in Oslo' });
        t.equal(whole.text, answerText, model);
      }
      const call = { model: 'sim-text', contents: 'weather in Oslo' };
      const pieces: string[] = [];
      for await (const { text } of await models.generateContentStream(call)) pieces.push(text ?? '');
      t.equal(pieces.join(''), answerText);
      const { totalTokens } = await models.countTokens(call);
      t.ok((totalTokens ?? 0) > 0);
      const unknown = await raised(sdk, models.generateContent({ model: 'none', contents: 'a' }));
      t.match(bodyOf(unknown), { code: 404, status: 'NOT_FOUND' });
    });
  }
}
