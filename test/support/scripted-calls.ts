import type { TextProtocolName } from '../../src/conversation/request.js';
import { type Answer, chunk, jsonAnswer, lastChunk, streamHead } from './upstream.js';

/** What a model answers: a call of a tool with a city, or a text. */
export type Said = { readonly call: string; readonly city: string } | { readonly text: string };

type Answering = Exclude<TextProtocolName, 'messages'>;

interface Written {
  readonly whole: object;
  /** Data of the events of a stream. */
  readonly events: readonly (object | string)[];
}

const writers: Readonly<Record<Answering, (said: Said, index: number) => Written>> = {
  chat: (said, index) => {
    const calls = 'call' in said ? [chatCall(said, index)] : null;
    const message = { role: 'assistant', content: 'text' in said ? said.text : null };
    const finish_reason = calls === null ? 'stop' : 'tool_calls';
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
    const frame = { id: `c${index}`, created: 1, model: 'u' };
    const event = (choice: object) => ({
      ...frame,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, finish_reason: null, ...choice }],
    });
    return {
      whole: {
        ...frame,
        object: 'chat.completion',
        choices: [
          { index: 0, message: calls === null ? message : { ...message, tool_calls: calls }, finish_reason },
        ],
        usage,
      },
      events: [
        event({
          delta:
            calls === null
              ? message
              : { ...message, tool_calls: calls.map((call) => ({ index: 0, ...call })) },
        }),
        event({ delta: {}, finish_reason }),
        { ...frame, object: 'chat.completion.chunk', choices: [], usage },
        '[DONE]',
      ],
    };
  },
  generateContent: (said) => {
    const part =
      'call' in said ? { functionCall: { name: said.call, args: { city: said.city } } } : { text: said.text };
    const whole = {
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
      modelVersion: 'u',
    };
    return { whole, events: [whole] };
  },
  responses: (said, index) => {
    const item =
      'call' in said
        ? {
            id: `fc_${index}`,
            type: 'function_call',
            status: 'completed',
            call_id: `call_${index}`,
            name: said.call,
            arguments: JSON.stringify({ city: said.city }),
          }
        : {
            id: `msg_${index}`,
            type: 'message',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text: said.text, annotations: [] }],
          };
    const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
    const frame = { id: `resp_u${index}`, object: 'response', created_at: 1, model: 'u' };
    const whole = { ...frame, status: 'completed', output: [item], usage };
    return {
      whole,
      events: [
        { type: 'response.created', response: { ...frame, status: 'in_progress', output: [], usage: null } },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: whole },
      ],
    };
  },
};

function chatCall(said: { readonly call: string; readonly city: string }, index: number): object {
  const fn = { name: said.call, arguments: JSON.stringify({ city: said.city }) };
  return { id: `call_${index}`, type: 'function', function: fn };
}

/**
 * Starts an upstream whose model gives these answers one after the other, each as an event stream or whole, as
 * requested.
 */
export function scriptedModel(protocol: Answering, script: readonly Said[]): Answer {
  return ({ head, body }, index) => {
    const { whole, events } = writers[protocol](script[index] ?? { text: 'nothing more' }, index);
    const isStream = head.includes(':streamGenerateContent') || JSON.parse(body.toString()).stream === true;
    if (!isStream) return jsonAnswer(200, JSON.stringify(whole));
    const data = events.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)));
    return streamHead + data.map((text) => chunk(`data: ${text}\n\n`)).join('') + lastChunk;
  };
}
