import type OpenAI from 'openai6';
import { testKey } from '../support/gateway.js';
import { type Client, type Sdk, sdks } from '../support/sdks/openai.js';
import {
  CellFault,
  type ClientLine,
  mostSteps,
  type Session,
  type SessionOptions,
  testLine,
  weather,
  weatherTool,
} from './cells.js';

type Message = OpenAI.ChatCompletionMessageParam;
type CallDelta = OpenAI.ChatCompletionChunk.Choice.Delta.ToolCall;

const { schema, ...described } = weatherTool;

function clientOf({ module: { OpenAI } }: Sdk, { url }: SessionOptions): Client {
  return new OpenAI({ apiKey: testKey, baseURL: `${url}/v1` });
}

/** The message of a stream with its reasoning, as https://api-docs.deepseek.com/guides/thinking_mode says to write it. */
async function gathered(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
  { onText }: SessionOptions,
): Promise<Message> {
  let content = '';
  let reasoning = '';
  const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = [];
  const add = ({ index, id, function: piece }: CallDelta): void => {
    const call = calls[index] ?? { id: '', type: 'function', function: { name: '', arguments: '' } };
    calls[index] = call;
    call.id ||= id ?? '';
    call.function.name += piece?.name ?? '';
    call.function.arguments += piece?.arguments ?? '';
  };
  for await (const { choices } of stream) {
    onText?.(choices[0]?.delta.content ?? '');
    content += choices[0]?.delta.content ?? '';
    reasoning += (choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '';
    for (const call of choices[0]?.delta.tool_calls ?? []) add(call);
  }
  const called = {
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
  };
  return { role: 'assistant', content: content === '' ? null : content, ...called };
}

function chatSession(sdk: Sdk, options: SessionOptions): Session {
  const client = clientOf(sdk, options);
  const messages: Message[] = [];
  const body = {
    model: 'm',
    messages,
    tools: [
      { type: 'function' as const, function: { ...described, parameters: { ...schema }, strict: true } },
    ],
    ...(options.thinks ? { reasoning_effort: 'high' as const } : {}),
  };
  const ask = async (): Promise<Message> => {
    if (options.stream)
      return gathered(await client.chat.completions.create({ ...body, stream: true }), options);
    const { choices } = await client.chat.completions.create(body);
    return choices[0]?.message ?? { role: 'assistant', content: 'no choice' };
  };
  return {
    async say(text, image) {
      const url = `data:image/png;base64,${image}`;
      messages.push({
        role: 'user',
        content:
          image === undefined
            ? text
            : [
                { type: 'text', text },
                { type: 'image_url', image_url: { url } },
              ],
      });
      for (let step = 0; step < mostSteps; step++) {
        const message = await ask();
        messages.push(message);
        const calls = ('tool_calls' in message ? message.tool_calls : undefined) ?? [];
        if (calls.length === 0) return String(message.content);
        for (const call of calls) {
          const input = 'function' in call ? call.function.arguments : '';
          messages.push({ role: 'tool', tool_call_id: call.id, content: weather(JSON.parse(input)) });
        }
      }
      return 'the calls had no end';
    },
  };
}

/** @param byId each request has what is new alone, and the id of the response before it */
function responsesSession(sdk: Sdk, options: SessionOptions, byId: boolean): Session {
  const client = clientOf(sdk, options);
  const input: OpenAI.Responses.ResponseInputItem[] = [];
  let previous: { previous_response_id: string } | undefined;
  const body = {
    model: 'm',
    input,
    tools: [{ type: 'function' as const, ...described, parameters: { ...schema }, strict: true }],
    ...(options.thinks ? { reasoning: { effort: 'high' as const, summary: 'auto' as const } } : {}),
  };
  const ask = async (): Promise<Pick<OpenAI.Responses.Response, 'id' | 'output'>> => {
    if (!options.stream) return client.responses.create({ ...body, ...previous });
    for await (const event of await client.responses.create({ ...body, ...previous, stream: true })) {
      if (event.type === 'response.completed') return event.response;
      if (event.type === 'response.output_text.delta') options.onText?.(event.delta);
      if (event.type === 'response.failed') throw new Error(event.response.error?.message);
    }
    throw new CellFault('the stream ended, and had no end of the protocol');
  };
  return {
    async say(text, image) {
      const image_url = `data:image/png;base64,${image}`;
      input.push({
        role: 'user',
        content:
          image === undefined
            ? text
            : [
                { type: 'input_text', text },
                { type: 'input_image', image_url, detail: 'auto' },
              ],
      });
      for (let step = 0; step < mostSteps; step++) {
        const { id, output } = await ask();
        if (byId) {
          previous = { previous_response_id: id };
          input.length = 0;
        } else input.push(...(output as OpenAI.Responses.ResponseInputItem[]));
        const calls = output.filter((item) => item.type === 'function_call');
        if (calls.length === 0) {
          const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
          return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
        }
        for (const { call_id, arguments: given } of calls)
          input.push({ type: 'function_call_output', call_id, output: weather(JSON.parse(given)) });
      }
      return 'the calls had no end';
    },
  };
}

for (const sdk of sdks) {
  const lines: readonly ClientLine[] = [
    { name: `${sdk.name} chat`, open: (options) => chatSession(sdk, options) },
    { name: `${sdk.name} responses`, open: (options) => responsesSession(sdk, options, false) },
    { name: `${sdk.name} responses by id`, open: (options) => responsesSession(sdk, options, true) },
  ];
  for (const line of lines) testLine(line);
}
