import { Anthropic } from 'anthropic1';
import { testKey } from '../support/gateway.js';
import { type Message, type MessageParam, type Sdk, sdks } from '../support/sdks/anthropic.js';
import { mostSteps, type Session, type SessionOptions, testLine, weather, weatherTool } from './cells.js';

const { schema, ...described } = weatherTool;

function messagesSession(
  { module: { Anthropic } }: Sdk,
  { url, stream, thinks, onText }: SessionOptions,
): Session {
  const client = new Anthropic({ apiKey: testKey, baseURL: url });
  const messages: MessageParam[] = [];
  const body = {
    model: 'm',
    max_tokens: 8192,
    messages,
    tools: [{ ...described, input_schema: { ...schema, required: [...schema.required] } }],
    ...(thinks ? { thinking: { type: 'enabled' as const, budget_tokens: 2048 } } : {}),
  };
  const ask = (): Promise<Message> => {
    if (!stream) return client.messages.create(body);
    const events = client.messages.stream(body);
    if (onText !== undefined) events.on('text', onText);
    return events.finalMessage();
  };
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

/** A thread, whose requests have what is new alone, and whose tools the SDK calls itself. */
function threadSession({ url, stream, thinks, onText }: SessionOptions): Session {
  const client = new Anthropic({ apiKey: testKey, baseURL: url });
  const tool = {
    ...described,
    input_schema: { ...schema, required: [...schema.required] },
    parse: (input: unknown) => input as { city: string },
    run: weather,
  };
  const thread = client.beta.messages.thread({
    model: 'm',
    max_tokens: 8192,
    tools: [tool],
    ...(thinks ? { thinking: { type: 'enabled', budget_tokens: 2048 } } : {}),
  });
  return {
    async say(text, image) {
      const source = { type: 'base64' as const, media_type: 'image/png' as const, data: image ?? '' };
      const shown = image === undefined ? [] : [{ type: 'image' as const, source }];
      thread.append({ role: 'user', content: [...shown, { type: 'text', text }] });
      const runner = thread.toolRunner({ stream, max_iterations: mostSteps });
      for await (const step of runner) if (onText !== undefined && 'on' in step) step.on('text', onText);
      const { content } = await runner.done();
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
  };
}

testLine({ name: 'anthropic 1 threads', open: threadSession });
for (const sdk of sdks) testLine({ name: sdk.name, open: (options) => messagesSession(sdk, options) });
