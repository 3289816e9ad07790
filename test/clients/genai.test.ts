import { testKey } from '../support/gateway.js';
import { type Part, type Response, type Sdk, sdks } from '../support/sdks/genai.js';
import { mostSteps, type Session, type SessionOptions, testLine, weather, weatherTool } from './cells.js';

const { schema, ...described } = weatherTool;

/** A chat as the SDK keeps it. */
function chatSession(
  { module: { GoogleGenAI } }: Sdk,
  { url, stream, thinks, onText }: SessionOptions,
): Session {
  const client = new GoogleGenAI({ apiKey: testKey, httpOptions: { baseUrl: url } });
  const chat = client.chats.create({
    model: 'm',
    config: {
      tools: [{ functionDeclarations: [{ ...described, parametersJsonSchema: schema }] }],
      ...(thinks ? { thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } } : {}),
    },
  });
  const ask = async (message: Part[]): Promise<readonly Response[]> => {
    if (!stream) return [await chat.sendMessage({ message })];
    const responses: Response[] = [];
    for await (const each of await chat.sendMessageStream({ message })) {
      responses.push(each);
      onText?.(each.text ?? '');
    }
    return responses;
  };
  return {
    async say(text, image) {
      const inlineData = { mimeType: 'image/png', data: image ?? '' };
      let message: Part[] = image === undefined ? [{ text }] : [{ text }, { inlineData }];
      for (let step = 0; step < mostSteps; step++) {
        const responses = await ask(message);
        const calls = responses.flatMap(({ functionCalls = [] }) => functionCalls);
        if (calls.length === 0) return responses.map((each) => each.text ?? '').join('');
        message = calls.map(({ id, name, args }) => ({
          functionResponse: {
            ...(id === undefined ? {} : { id }),
            name: name ?? '',
            response: { output: weather(args as { city: string }) },
          },
        }));
      }
      return 'the calls had no end';
    },
  };
}

for (const sdk of sdks) testLine({ name: sdk.name, open: (options) => chatSession(sdk, options) });
