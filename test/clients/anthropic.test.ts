import { testKey } from '../support/gateway.js';
import { type Message, type MessageParam, type Sdk, sdks } from '../support/sdks/anthropic.js';
import { mostSteps, type Session, type SessionOptions, testLine, weather, weatherTool } from './cells.js';

const { schema, ...described } = weatherTool;

function messagesSession({ module: { Anthropic } }: Sdk, { url, stream, thinks }: SessionOptions): Session {
  const client = new Anthropic({ apiKey: testKey, baseURL: url });
  const messages: MessageParam[] = [];
  const body = {
    model: 'm',
    max_tokens: 8192,
    messages,
    tools: [{ ...described, input_schema: { ...schema, required: [...schema.required] } }],
    ...(thinks ? { thinking: { type: 'enabled' as const, budget_tokens: 2048 } } : {}),
  };
  const ask = (): Promise<Message> =>
    stream ? client.messages.stream(body).finalMessage() : client.messages.create(body);
  return {
    async say(text, image) {
      const source = { type: 'base64' as const, media_type: 'image/png' as const, data: image ?? '' };
      messages.push({
        role: 'user',
        content:
          image === undefined
            ? text
            : [
                { type: 'image', source },
                { type: 'text', text },
              ],
      });
      for (let step = 0; step < mostSteps; step++) {
        const { content } = await ask();
        messages.push({ role: 'assistant', content });
        const calls = content.filter((block) => block.type === 'tool_use');
        if (calls.length === 0)
          return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
        messages.push({
          role: 'user',
          content: calls.map(({ id, input }) => ({
            type: 'tool_result',
            tool_use_id: id,
            content: weather(input as { city: string }),
          })),
        });
      }
      return 'the calls had no end';
    },
  };
}

for (const sdk of sdks) testLine({ name: sdk.name, open: (options) => messagesSession(sdk, options) });
