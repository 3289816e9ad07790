import { Type } from 'typebox';
import { compileSchema, type MixedBody } from '../../../schema/compile.js';
import {
  bodies,
  flag,
  given,
  mapOf,
  metered,
  name,
  nullable,
  otherType,
  record,
  streaming,
  text,
} from '../../../schema/members.js';

const contentPart = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({
    type: Type.Literal('image_url'),
    // Mistral's clients send the URL itself (https://docs.mistral.ai/capabilities/vision).
    image_url: Type.Union([
      Type.Object({ url: Type.String({ minLength: 1 }), detail: text }),
      Type.String({ minLength: 1 }),
    ]),
  }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({ data: Type.String(), format: Type.String() }),
  }),
  Type.Object({
    type: Type.Literal('file'),
    file: Type.Object({ file_data: text, file_id: text, filename: text }),
  }),
  otherType(['text', 'image_url', 'refusal', 'input_audio', 'file']),
]);
const content = Type.Union([Type.String(), Type.Array(contentPart), Type.Null()]);

const toolCall = Type.Object({
  id: text,
  type: text,
  function: Type.Optional(Type.Object({ name: Type.String(), arguments: text })),
  custom: Type.Optional(Type.Object({ name: Type.String(), input: text })),
});

const message = Type.Union([
  Type.Object({ role: Type.Enum(['user', 'system', 'developer']), content, name: text }),
  Type.Object({
    role: Type.Literal('assistant'),
    content: Type.Optional(content),
    refusal: text,
    name: text,
    reasoning_content: text,
    audio: record,
    tool_calls: nullable(Type.Array(toolCall)),
    function_call: nullable(Type.Object({ name: Type.String(), arguments: text })),
  }),
  // Without an id where it is clear which call's result it is.
  Type.Object({ role: Type.Literal('tool'), content, tool_call_id: text }),
  Type.Object({ role: Type.Literal('function'), content, name: Type.String() }),
  Type.Object({
    role: Type.Unsafe<string>({
      type: 'string',
      not: { enum: ['user', 'system', 'developer', 'assistant', 'tool', 'function'] },
    }),
  }),
]);

const functionDefinition = { name, description: text, parameters: record, strict: flag };
const tool = Type.Union([
  Type.Object({ type: Type.Literal('function'), function: Type.Object(functionDefinition) }),
  Type.Object({ type: Type.Literal('custom'), custom: Type.Object({ name, description: text }) }),
  otherType(['function', 'custom']),
]);

// Perplexity and its clients have no name for it (https://docs.perplexity.ai/guides/structured-outputs).
const namedSchema = Type.Object({ name: nullable(name), description: text, schema: record, strict: flag });
const responseFormat = Type.Union([
  Type.Object({
    type: Type.Literal('json_schema'),
    schema: Type.Object({}),
    json_schema: nullable(namedSchema),
  }),
  Type.Object({ type: Type.Literal('json_schema'), json_schema: namedSchema }),
  otherType(['json_schema']),
]);

// Clients of LM Studio and llama.cpp send -1 for "no limit" (https://lmstudio.ai/docs/app/api/endpoints/openai).
const tokenLimit = Type.Integer({ minimum: -1 });

/** Body of `POST /v1/chat/completions`. */
export const chatRequestType = Type.Object({
  model: name,
  messages: Type.Array(message, { minItems: 1 }),
  stream: flag,
  stream_options: nullable(Type.Object({ include_usage: flag, include_obfuscation: flag })),
  max_completion_tokens: nullable(tokenLimit),
  max_tokens: nullable(tokenLimit),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  presence_penalty: nullable(Type.Number({ minimum: -2, maximum: 2 })),
  frequency_penalty: nullable(Type.Number({ minimum: -2, maximum: 2 })),
  n: nullable(Type.Integer({ minimum: 1, maximum: 128 })),
  // Clients send an empty list for "none"; OpenAI takes up to 4, others more.
  stop: nullable(Type.Union([Type.String(), Type.Array(Type.String())])),
  seed: nullable(Type.Integer()),
  logit_bias: nullable(mapOf(Type.Number({ minimum: -100, maximum: 100 }))),
  logprobs: flag,
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  user: text,
  safety_identifier: text,
  metadata: nullable(mapOf(Type.String(), { maxProperties: 16 })),
  tools: nullable(Type.Array(tool)),
  tool_choice: nullable(Type.Union([Type.String(), Type.Object({ type: Type.String() })])),
  parallel_tool_calls: flag,
  functions: nullable(Type.Array(Type.Object(functionDefinition), { maxItems: 128 })),
  function_call: nullable(Type.Union([Type.String(), Type.Object({ name })])),
  response_format: nullable(responseFormat),
  reasoning_effort: text,
  verbosity: text,
  modalities: nullable(Type.Array(Type.String())),
  audio: record,
  prediction: record,
  web_search_options: record,
  service_tier: text,
  store: flag,
  prompt_cache_key: text,
});

/** Bodies of the other text endpoints, recognised by the member that holds their input. */
export const chatMixedBody: MixedBody = {
  own: 'messages',
  foreign: [bodies.responses, bodies.generateContent, bodies.completions],
};

/** Check of a chat request body that is translated. */
export const chatRequest = compileSchema(chatRequestType, chatMixedBody, {
  // The AI SDK's compatible provider sends both in version 4 of the SDK, and in early ones of version 5.
  echoes: { reasoning_effort: 'reasoningEffort' },
});

/** Check of every chat request body, and the only one for a body that is passed on untouched. */
export const passedChatRequest = compileSchema(
  Type.Object({
    model: name,
    messages: given,
    ...streaming,
    max_completion_tokens: metered,
    max_tokens: metered,
    n: metered,
  }),
  chatMixedBody,
  chatRequest.guard.spec,
);
