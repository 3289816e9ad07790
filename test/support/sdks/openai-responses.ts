import * as parser4 from 'openai4/lib/parser';
import type { OpenAI } from 'openai6';
import * as parser6 from 'openai6/lib/parser';
import * as parser7 from 'openai7/lib/parser';
import type { Client, Sdk } from './openai.js';

export type Responses = OpenAI.Responses.Response;
export type InputItem = OpenAI.Responses.ResponseInputItem;
export type ResponseEvent = OpenAI.Responses.ResponseStreamEvent;
export type FunctionTool = OpenAI.Responses.FunctionTool;
type Compacted = OpenAI.Responses.CompactedResponse;
type InputTokens = OpenAI.Responses.InputTokenCountResponse;
type MakeTextFormat = typeof parser6.makeParseableTextFormat;

const textFormats: Readonly<Record<string, MakeTextFormat>> = {
  'openai 4': parser4.makeParseableTextFormat as unknown as MakeTextFormat,
  'openai 6': parser6.makeParseableTextFormat,
  'openai 7': parser7.makeParseableTextFormat as unknown as MakeTextFormat,
};

/** Makes a format that `responses.parse` reads with the given function. */
export function textFormatOf(sdk: Sdk): MakeTextFormat {
  const make = textFormats[sdk.name];
  if (make === undefined) throw new Error(`${sdk.name} has no parser`);
  return make;
}

/** Creates a compaction: version 4 has no method for it. */
export function compact(client: Client, body: { model: string; input: InputItem[] }): Promise<Compacted> {
  const { responses } = client as { responses: Partial<Client['responses']> };
  return responses.compact === undefined
    ? client.post<Compacted>('/responses/compact', { body })
    : client.responses.compact(body);
}

/** Counts the tokens of an input: version 4 has no method for it. */
export function countInput(client: Client, body: { model: string; input: string }): Promise<InputTokens> {
  const { responses } = client as { responses: Partial<Client['responses']> };
  return responses.inputTokens === undefined
    ? client.post<InputTokens>('/responses/input_tokens', { body })
    : client.responses.inputTokens.count(body);
}

/** Returns the part of an answer's output that a client sends back as the next input. */
export function inputOf(output: Responses['output'] | Compacted['output']): InputItem[] {
  return output as InputItem[];
}

/** Returns the joined texts of an answer: the stream helper of version 4 has no `output_text`. */
export function textOf({ output }: Responses): string {
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
}

/** Returns the function calls in an answer. */
export function callsOf(response: Responses): readonly OpenAI.Responses.ResponseFunctionToolCall[] {
  return response.output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
}

/** Makes items that answer every call of an answer. */
export function resultsOf(response: Responses, output: string): InputItem[] {
  return callsOf(response).map((call) => ({ type: 'function_call_output', call_id: call.call_id, output }));
}

/** Makes a function tool with one parameter. */
export function functionTool(name: string): FunctionTool {
  return {
    type: 'function',
    name,
    description: `Calls ${name}`,
    strict: true,
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
  };
}
