import { testKey } from '../support/gateway.js';
import { textProtocols } from '../support/translated.js';
import { mostSteps, type Session, type SessionOptions, testLine, weather, weatherTool } from './cells.js';
import { install, load } from './install.js';

/** A call of a function, whose arguments the SDK gives as it gets them. */
interface Call {
  readonly id?: string;
  readonly index?: number;
  readonly function: { name: string; arguments: string | object };
}

interface Message {
  readonly role?: string | null;
  readonly content?: string | readonly { readonly type?: string; readonly text?: string }[] | null;
  readonly toolCalls?: readonly Call[] | null;
}

interface Chat {
  complete(call: object): Promise<{ readonly choices: readonly { readonly message?: Message }[] }>;
  stream(
    call: object,
  ): Promise<AsyncIterable<{ readonly data: { readonly choices: readonly { readonly delta: Message }[] } }>>;
}

/** What is used of the SDK, which writes in camel case what the wire has in snake case. */
interface Module {
  readonly Mistral: new (options: object) => { readonly chat: Chat };
}

const { Mistral } = await load<Module>(await install('mistral'), '@mistralai/mistralai');
const { schema, ...described } = weatherTool;
const tools = [{ type: 'function', function: { ...described, parameters: schema } }];

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => text ?? '').join('');
}

function jsonOf({ function: { arguments: given } }: Call): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}

/** The message of a stream. */
async function gathered(
  stream: Awaited<ReturnType<Chat['stream']>>,
  onText: SessionOptions['onText'],
): Promise<Message> {
  let content = '';
  const toolCalls: Call[] = [];
  for await (const { data } of stream) {
    const delta = data.choices[0]?.delta ?? {};
    onText?.(textOf(delta));
    content += textOf(delta);
    for (const call of delta.toolCalls ?? []) {
      const index = call.index ?? 0;
      const begun = toolCalls[index];
      if (begun === undefined) toolCalls[index] = call;
      else begun.function.arguments = jsonOf(begun) + jsonOf(call);
    }
  }
  return { role: 'assistant', content, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
}

function chatSession({ url, stream, thinks, onText }: SessionOptions): Session {
  const { chat } = new Mistral({ apiKey: testKey, serverURL: url, retryConfig: { strategy: 'none' } });
  const messages: object[] = [];
  const call = { model: 'm', messages, tools, ...(thinks ? { reasoningEffort: 'high' } : {}) };
  const ask = async (): Promise<Message> => {
    if (stream) return gathered(await chat.stream(call), onText);
    const { choices } = await chat.complete(call);
    return choices[0]?.message ?? { role: 'assistant', content: 'no choice' };
  };
  return {
    async say(text, image) {
      const imageUrl = { url: `data:image/png;base64,${image}` };
      const parts = [
        { type: 'text', text },
        { type: 'image_url', imageUrl },
      ];
      messages.push({ role: 'user', content: image === undefined ? text : parts });
      for (let step = 0; step < mostSteps; step++) {
        const message = await ask();
        messages.push(message);
        const calls = message.toolCalls ?? [];
        if (calls.length === 0) return textOf(message);
        for (const made of calls) {
          const content = weather(JSON.parse(jsonOf(made)));
          messages.push({ role: 'tool', toolCallId: made.id, name: made.function.name, content });
        }
      }
      return 'the calls had no end';
    },
  };
}

// An upstream of chat would get the words of the client as they are, of which some are Mistral's alone.
const wires = textProtocols.filter((wire) => wire !== 'chat');
testLine({ name: 'mistral', wires, open: chatSession });
