import { Type } from 'typebox';
import type { CompiledSchema } from '../../../schema/accept.js';
import { compileSchema, type MixedBody, requiring } from '../../../schema/compile.js';
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
  text,
} from '../../../schema/members.js';
import { isObject, missingValue } from '../../../wire/json.js';
import { MemberGuard } from '../../../wire/member-guard.js';
import { routedMembers } from '../../../wire/routed-members.js';

const contentTypes = ['input_text', 'input_image', 'input_file', 'output_text', 'refusal'];
const contentPart = Type.Union([
  Type.Object({ type: Type.Enum(['input_text', 'output_text']), text: Type.String() }),
  Type.Object({ type: Type.Literal('input_image'), image_url: text, file_id: text, detail: text }),
  Type.Object({
    type: Type.Literal('input_file'),
    file_data: text,
    file_url: text,
    file_id: text,
    filename: text,
  }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  otherType(contentTypes),
]);
const content = Type.Union([Type.String(), Type.Array(contentPart)]);

const roles = ['user', 'assistant', 'system', 'developer'];
const callOutput = { call_id: text, output: content };
const summaryPart = Type.Object({ type: Type.String() });

const item = Type.Union([
  // Clients omit the type of a message.
  Type.Object({ type: nullable(Type.Literal('message')), role: Type.Enum(roles), content }),
  Type.Object({
    type: Type.Literal('function_call'),
    call_id: Type.String(),
    name: Type.String(),
    arguments: Type.String(),
  }),
  Type.Object({ type: Type.Literal('function_call_output'), ...callOutput }),
  Type.Object({
    type: Type.Literal('reasoning'),
    summary: nullable(Type.Array(summaryPart)),
    content: nullable(Type.Array(summaryPart)),
    encrypted_content: text,
  }),
  Type.Object({
    type: Type.Literal('custom_tool_call'),
    call_id: Type.String(),
    name: Type.String(),
    input: Type.String(),
  }),
  Type.Object({ type: Type.Literal('custom_tool_call_output'), ...callOutput }),
  // The type may be omitted, too: https://platform.openai.com/docs/api-reference/responses/create (ItemReferenceParam).
  Type.Object({
    type: nullable(Type.Literal('item_reference')),
    id: Type.String(),
    role: Type.Optional(Type.Null()),
  }),
  Type.Object({ type: Type.Literal('compaction'), encrypted_content: Type.String() }),
  Type.Object({
    type: Type.Optional(Type.Literal('message')),
    role: Type.Unsafe<string>({ type: 'string', not: { enum: roles } }),
  }),
  otherType([
    'message',
    'function_call',
    'function_call_output',
    'reasoning',
    'custom_tool_call',
    'custom_tool_call_output',
    'item_reference',
    'compaction',
  ]),
]);
const input = Type.Union([Type.String(), Type.Array(item)]);

const tool = Type.Union([
  Type.Object({
    type: Type.Literal('function'),
    name,
    description: text,
    parameters: record,
    strict: flag,
  }),
  Type.Object({ type: Type.Literal('custom'), name, description: text }),
  otherType(['function', 'custom']),
]);

const textFormat = Type.Union([
  Type.Object({
    type: Type.Literal('json_schema'),
    name,
    description: text,
    schema: Type.Object({}),
    strict: flag,
  }),
  otherType(['json_schema']),
]);

const settings = {
  instructions: nullable(Type.Union([Type.String(), Type.Array(item)])),
  previous_response_id: text,
  prompt_cache_key: text,
  prompt_cache_options: record,
  prompt_cache_retention: text,
  service_tier: text,
};

/** Members that count as input, besides the input itself. */
const counted = {
  tools: nullable(Type.Array(tool)),
  tool_choice: nullable(Type.Union([Type.String(), Type.Object({ type: Type.String() })])),
  parallel_tool_calls: flag,
  text: nullable(Type.Object({ format: nullable(textFormat), verbosity: text })),
  reasoning: nullable(Type.Object({ effort: text, summary: text, generate_summary: text })),
  truncation: text,
  conversation: nullable(Type.Union([Type.String(), Type.Object({ id: Type.String() })])),
};

/** Body of `POST /v1/responses`. */
export const responsesRequestType = Type.Object({
  model: name,
  input: Type.Optional(input),
  ...settings,
  // The documented minimum is 16. Real clients send less, and an upstream of the same protocol checks the value itself.
  max_output_tokens: nullable(Type.Integer({ minimum: 1 })),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  ...counted,
  stream: flag,
  stream_options: nullable(Type.Object({ include_obfuscation: flag })),
  include: nullable(Type.Array(Type.String())),
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  metadata: nullable(mapOf(Type.String(), { maxProperties: 16 })),
  store: flag,
  background: flag,
  prompt: nullable(Type.Object({ id: Type.String() })),
  max_tool_calls: nullable(Type.Integer()),
  user: text,
  safety_identifier: text,
  context_management: nullable(Type.Array(Type.Object({}))),
  moderation: record,
});

/** Body of `POST /v1/responses/compact`. Clients also send the settings of their turns, which are ignored. */
export const compactRequestType = Type.Object({ model: name, input: nullable(input), ...settings });

/** Body of `POST /v1/responses/input_tokens`. */
export const inputTokensRequestType = Type.Object({
  model: name,
  input: nullable(input),
  ...settings,
  ...counted,
});

/** Bodies of the other text endpoints, recognised by the member that holds their input. */
const responsesMixedBody: MixedBody = {
  own: 'input',
  foreign: [bodies.chat, bodies.generateContent],
};

/** Members that may replace an input: each names one that the upstream stores. */
const inputElsewhere = ['previous_response_id', 'prompt', 'conversation'];

const members = compileSchema(responsesRequestType, responsesMixedBody, { within: { conversation: {} } });

const elsewhere = { reads: [], bars: routedMembers, steers: true };

/** Members that must be unambiguous in a message that requests a response over a WebSocket. */
export const messageGuard = new MemberGuard({
  ...members.guard.spec,
  reads: [...members.guard.spec.reads, 'type', 'generate', 'response', 'session'],
  // On other WebSockets, these events have the request, or the settings of all requests, in a member.
  within: { ...members.guard.spec.within, response: elsewhere, session: elsewhere },
});

/** Check of a responses request body that is translated. */
export const responsesRequest = withInput(members);

/** Check of the body of a compaction request that is translated. */
export const compactRequest = compileSchema(compactRequestType, responsesMixedBody, members.guard.spec);

/** Check of a request that counts input tokens and that the gateway answers. */
export const inputTokensRequest = compileSchema(
  inputTokensRequestType,
  responsesMixedBody,
  members.guard.spec,
);

/** An upstream runs the tools that items bring in what it has kept of earlier calls. */
const passedMembers = { ...members.guard.spec, wantsItemTools: true };

/** Check of every responses request body, and the only one for a body that is passed on untouched. */
export const passedResponsesRequest = withInput(
  compileSchema(
    Type.Object({
      model: name,
      input: Type.Optional(given),
      previous_response_id: text,
      stream: flag,
      stream_options: record,
      max_output_tokens: metered,
    }),
    responsesMixedBody,
    passedMembers,
  ),
);

/** The same for a compaction. */
export const passedCompactRequest = compileSchema(
  Type.Object({ model: name, input: Type.Optional(given), previous_response_id: text }),
  responsesMixedBody,
  passedMembers,
);

/** The same for a request that counts input tokens. The vendor requires none of its members. */
export const passedInputTokensRequest = compileSchema(
  Type.Object({ model: name, input: Type.Optional(given), previous_response_id: text }),
  responsesMixedBody,
  passedMembers,
);

/** Returns the check with a further condition: there is an input, in the body or at the upstream. */
function withInput(members: CompiledSchema): CompiledSchema {
  return requiring(members, hasInput, () =>
    missingValue('input', "a string or an array, or 'previous_response_id', 'conversation' or 'prompt'"),
  );
}

function hasInput(body: unknown): boolean {
  if (!isObject(body)) return false;
  return Object.hasOwn(body, 'input') || inputElsewhere.some((key) => (body[key] ?? null) !== null);
}
