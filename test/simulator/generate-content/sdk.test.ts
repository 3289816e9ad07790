import { GoogleGenAI as GenAI1 } from 'genai1';
import { GoogleGenAI as GenAI2 } from 'genai2';
import { GoogleGenAI as GenAI3 } from 'genai3';
import { test } from 'tap';
import { simulate } from '../../support/simulator.js';

interface SdkClass {
  new (options: { apiKey: string; httpOptions: { baseUrl: string } }): unknown;
}

const model = 'sim-text';
const tool = {
  functionDeclarations: [
    {
      name: 'get_weather',
      parametersJsonSchema: {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
      },
    },
  ],
};

for (const [name, found] of [
  ['genai 1', GenAI1 as SdkClass],
  ['genai 2', GenAI2 as SdkClass],
  ['genai 3', GenAI3 as SdkClass],
] as const) {
  const clientOf = (url: string): GenAI3 =>
    new found({ apiKey: 'any', httpOptions: { baseUrl: url.replace(/\/v1$/, '') } }) as GenAI3;

  test(`${name} generates, counts and streams`, async (t) => {
    const client = clientOf((await simulate(t)).url);
    const contents = 'Hello there';
    const whole = await client.models.generateContent({ model, contents });
    t.equal(whole.text, 'Simulated answer to: Hello there');
    t.equal((await client.models.countTokens({ model, contents })).totalTokens, 3);
    let text = '';
    let total = 0;
    const config = { thinkingConfig: { includeThoughts: true }, systemInstruction: 'short' };
    for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
      text += chunk.text ?? '';
      total = chunk.usageMetadata?.totalTokenCount ?? 0;
    }
    t.equal(text, 'Simulated answer to: Hello there');
    t.ok(total > 0);
  });

  test(`${name} helps a chat through thinking, a call and its response`, async (t) => {
    const client = clientOf((await simulate(t)).url);
    const config = { tools: [tool], thinkingConfig: { includeThoughts: true } };
    const chat = client.chats.create({ model, config });
    const first = await chat.sendMessage({ message: 'weather in Oslo' });
    t.match(first.functionCalls, [{ name: 'get_weather', args: { city: 'Oslo' } }]);
    const message = { functionResponse: { name: 'get_weather', response: { output: 'rain' } } };
    let text = '';
    for await (const chunk of await chat.sendMessageStream({ message: [message] })) {
      text += chunk.text ?? '';
    }
    t.equal(text, 'Simulated answer to: weather in Oslo\nTool result: rain');
    const third = await chat.sendMessage({ message: 'Thanks' });
    t.equal(third.text, 'Simulated answer to: Thanks', 'with its whole signed history');
  });

  test(`${name} raises its error for what the simulator refuses`, async (t) => {
    const client = clientOf((await simulate(t)).url);
    const failure = (sent: Promise<unknown>): Promise<unknown> =>
      sent.then(
        () => null,
        (error) => error,
      );
    const unknown = await failure(client.models.generateContent({ model: 'nope', contents: 'a' }));
    t.match(unknown, { status: 404, message: /NOT_FOUND/ });
    const limited = client.models.generateContentStream({ model, contents: '[[fault:status=429]] a' });
    t.match(await failure(limited), { status: 429 });
  });
}
