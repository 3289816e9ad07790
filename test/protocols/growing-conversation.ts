import { carryInId } from '../../src/conversation/carrying-id.js';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { tagSignature, tokenAsBytes } from '../../src/conversation/signature.js';
import { tagUnsigned } from '../../src/conversation/unsigned-reasoning.js';
import type { JsonObject } from '../../src/wire/json.js';
import { chatClient } from '../suites/translation/chat-client.js';
import type { Client } from '../suites/translation/client.js';
import { generateContentClient } from '../suites/translation/generate-content-client.js';
import { pixel } from '../suites/translation/image.js';
import { messagesClient } from '../suites/translation/messages-client.js';
import { responsesClient } from '../suites/translation/responses-client.js';
import { tools } from '../suites/translation/tool-scenarios.js';

interface Call {
  /** Empty where a client whose protocol has no need of ids names none. */
  readonly id: string;
  readonly name: string;
  readonly args: JsonObject;
}

/** What is added to a conversation at a time. */
type Step =
  | { readonly by: 'user'; readonly text: string; readonly image?: boolean }
  | { readonly by: 'system'; readonly text: string }
  | { readonly by: 'tools'; readonly results: readonly (Call & { output: string })[]; readonly text?: string }
  | {
      readonly by: 'model';
      readonly thought?: string;
      readonly text?: string;
      readonly calls?: readonly Call[];
    };

/** What a client adds to its conversation for a step, in its own form. */
type Writer = (step: Step, signature: string | null) => readonly JsonObject[];

const rome: Call = { id: 'call_1', name: 'get_weather', args: { city: 'Rome "Roma"' } };
const osaka: Call = { id: 'call_2', name: 'get_time', args: { city: '大阪' } };
const oslo: Call = { id: 'call_3', name: 'get_weather', args: { city: 'Oslo' } };

export const system = 'Answer "briefly".\nUse the tools.';
export const firstText = 'What is on this picture, and how is the weather there?';

/** The steps between one request and the next: each ends with what the model is to answer. */
export const rounds: readonly (readonly Step[])[] = [
  [{ by: 'user', text: firstText, image: true }],
  [
    { by: 'model', thought: 'Two tools will do.\n', text: 'Let me see. ', calls: [rome, osaka] },
    {
      by: 'tools',
      results: [
        { ...rome, output: '{"sky":"clear","degrees":21.50}' },
        { ...osaka, output: 'noon — 正午' },
      ],
    },
  ],
  [
    { by: 'model', thought: 'Now I know.', text: 'Clear, and it is noon.  ' },
    { by: 'user', text: 'Thanks! 🌍' },
  ],
  // The user was faster than the model.
  [{ by: 'user', text: 'And in Oslo?' }],
  [
    { by: 'model', thought: 'One more.', calls: [oslo] },
    { by: 'tools', results: [{ ...oslo, output: 'rain' }], text: 'Only one sentence, please.' },
  ],
  [
    { by: 'model', text: 'It rains.' },
    { by: 'system', text: 'The user is in a hurry.' },
    { by: 'user', text: 'So where should I go?' },
  ],
];

/** Numbers of the rounds that go on where the user has just spoken. */
export const interruptions: readonly number[] = [3];

const image = { mediaType: 'image/png', data: pixel };

/** Chat has no other field for it: the first call of a step carries it. */
function carried(calls: readonly Call[] | undefined, signature: string | null): readonly Call[] | undefined {
  if (signature === null) return calls;
  return calls?.map((call, index) =>
    index === 0 ? { ...call, id: carryInId(call.id, [signature]) ?? call.id } : call,
  );
}

/** Results name the ids of their calls as the client got them. */
const carriers: readonly Call[] = [rome, oslo];

const chatWriter: Writer = (step, signature) => {
  switch (step.by) {
    case 'user':
      return chatClient.user(step.text, step.image ? image : undefined) as JsonObject[];
    case 'system':
      return [{ role: 'developer', content: step.text }];
    case 'tools':
      return [
        ...step.results.map((result) => ({
          role: 'tool',
          tool_call_id: carriers.some(({ id }) => id === result.id)
            ? (carried([result], signature)?.[0]?.id ?? result.id)
            : result.id,
          content: result.output,
        })),
        ...(step.text === undefined ? [] : [{ role: 'user', content: step.text }]),
      ];
    case 'model':
      return [
        {
          role: 'assistant',
          content: step.text ?? null,
          ...(step.thought === undefined ? {} : { reasoning_content: step.thought }),
          ...(step.calls === undefined
            ? {}
            : {
                tool_calls: carried(step.calls, signature)?.map(({ id, name, args }) => ({
                  id,
                  type: 'function',
                  function: { name, arguments: JSON.stringify(args, null, 1) },
                })),
              }),
        },
      ];
  }
};

const messagesWriter: Writer = (step, signature) => {
  const text = (text: string): JsonObject => ({ type: 'text', text });
  switch (step.by) {
    case 'user':
      return messagesClient.user(step.text, step.image ? image : undefined) as JsonObject[];
    case 'system':
      return [{ role: 'system', content: step.text }];
    case 'tools': {
      const results = step.results.map(({ id, output }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: output,
      }));
      return [{ role: 'user', content: [...results, ...(step.text === undefined ? [] : [text(step.text)])] }];
    }
    case 'model': {
      const content: JsonObject[] = [];
      if (step.thought !== undefined)
        content.push({ type: 'thinking', thinking: step.thought, signature: signature ?? '' });
      if (step.text !== undefined) content.push(text(step.text));
      for (const { id, name, args } of step.calls ?? [])
        content.push({ type: 'tool_use', id, name, input: args });
      return [{ role: 'assistant', content }];
    }
  }
};

const responsesWriter: Writer = (step, signature) => {
  const message = (role: string, type: string, text: string): JsonObject => ({
    type: 'message',
    role,
    content: [{ type, text }],
  });
  switch (step.by) {
    case 'user':
      return responsesClient.user(step.text, step.image ? image : undefined) as JsonObject[];
    case 'system':
      return [message('developer', 'input_text', step.text)];
    case 'tools':
      return [
        ...step.results.map(({ id, output }) => ({ type: 'function_call_output', call_id: id, output })),
        ...(step.text === undefined ? [] : [message('user', 'input_text', step.text)]),
      ];
    case 'model': {
      const items: JsonObject[] = [];
      if (step.thought !== undefined)
        items.push({
          type: 'reasoning',
          id: 'rs_1',
          summary: [{ type: 'summary_text', text: step.thought }],
          ...(signature === null ? {} : { encrypted_content: signature }),
        });
      if (step.text !== undefined) items.push(message('assistant', 'output_text', step.text));
      for (const { id, name, args } of step.calls ?? [])
        items.push({ type: 'function_call', call_id: id, name, arguments: JSON.stringify(args) });
      return items;
    }
  }
};

/** The calls of the first round go without ids, as most do in this protocol. */
const generateContentWriter: Writer = (step, signature) => {
  const idOf = ({ id }: Call): JsonObject => (id === oslo.id ? { id } : {});
  switch (step.by) {
    case 'user':
      return generateContentClient.user(step.text, step.image ? image : undefined) as JsonObject[];
    case 'system':
      // The protocol has none in the middle of a conversation.
      return [];
    case 'tools': {
      const parts: JsonObject[] = step.results.map((result) => ({
        functionResponse: { ...idOf(result), name: result.name, response: { output: result.output } },
      }));
      if (step.text !== undefined) parts.push({ text: step.text });
      return [{ role: 'user', parts }];
    }
    case 'model': {
      const parts: JsonObject[] = [];
      if (step.text !== undefined) parts.push({ text: step.text });
      for (const call of step.calls ?? [])
        parts.push({ functionCall: { ...idOf(call), name: call.name, args: call.args } });
      if (step.thought !== undefined) {
        if (signature !== null) parts[0] = { ...parts[0], thoughtSignature: tokenAsBytes(signature) };
        parts.unshift({ text: step.thought, thought: true });
      }
      return [{ role: 'model', parts }];
    }
  }
};

const writers: Readonly<Record<TextProtocolName, Writer>> = {
  chat: chatWriter,
  messages: messagesWriter,
  responses: responsesWriter,
  generateContent: generateContentWriter,
};

/** What the upstream's own signature looks like to the client; none where it is not signed to a chat client. */
function signatureOf(upstream: TextProtocolName, client: TextProtocolName): string | null {
  if (client === 'chat' && (upstream === 'chat' || upstream === 'responses')) return null;
  if (upstream === 'chat') return tagUnsigned('reasoning_content', 'u');
  const encrypted = upstream === 'responses';
  const value = encrypted ? 'rs_1:c2ln+/A=' : 'c2ln+/A=';
  return tagSignature({ protocol: upstream, model: 'u', value, redacted: encrypted });
}

/**
 * The bodies that a client sends in the course of the conversation, one for each round.
 * @param upstream who answers, and has signed the reasoning
 */
export function requestBodies(client: Client, upstream: TextProtocolName, thinks: boolean): JsonObject[] {
  const write = writers[client.protocol];
  const signature = signatureOf(upstream, client.protocol);
  const turns: JsonObject[] = [];
  return rounds.map((round) => {
    for (const step of round)
      turns.push(
        ...write(step.by === 'model' && !thinks ? { ...step, thought: undefined } : step, signature),
      );
    const last = turns.length - 1;
    const sent =
      client === messagesClient ? turns.map((turn, index) => (index === last ? marked(turn) : turn)) : turns;
    const ask = { turns: structuredClone(sent), stream: true, system, tools };
    return client.request('m', thinks ? { ...ask, thinks: 'shown' } : ask).body;
  });
}

/** Clients of this protocol mark where their prompt ends, which moves on with every request. */
function marked(message: JsonObject): JsonObject {
  const { content } = message;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as JsonObject[]);
  const last = { ...blocks.at(-1), cache_control: { type: 'ephemeral' } };
  return { ...message, content: [...blocks.slice(0, -1), last] };
}
