import { type TSchema, Type } from 'typebox';
import type { CompiledSchema } from '../../../schema/accept.js';
import { compileSchema, type MixedBody, requiring } from '../../../schema/compile.js';
import { bodies, flag, given, metered, name, nullable, otherType, text } from '../../../schema/members.js';
import { isObject, memberError, missingValue } from '../../../wire/json.js';

const textBlock = Type.Object({ type: Type.Literal('text'), text: Type.String() });
const base64Source = Type.Object({
  type: Type.Literal('base64'),
  media_type: Type.String(),
  data: Type.String(),
});
const urlSource = Type.Object({ type: Type.Literal('url'), url: name });
const imageBlock = Type.Object({
  type: Type.Literal('image'),
  source: Type.Union([base64Source, urlSource, otherType(['base64', 'url'])]),
});
const documentBlock = Type.Object({
  type: Type.Literal('document'),
  source: Type.Union([
    base64Source,
    Type.Object({ type: Type.Literal('text'), data: Type.String() }),
    urlSource,
    Type.Object({
      type: Type.Literal('content'),
      content: Type.Union([
        Type.String(),
        Type.Array(Type.Union([textBlock, imageBlock, otherType(['text', 'image'])])),
      ]),
    }),
    otherType(['base64', 'text', 'url', 'content']),
  ]),
  title: text,
  context: text,
});
const searchResultBlock = Type.Object({
  type: Type.Literal('search_result'),
  source: Type.String(),
  title: Type.String(),
  content: Type.Array(Type.Union([textBlock, otherType(['text'])])),
});

const shownTypes = ['text', 'image', 'document', 'search_result'];
/** Types that `decode.ts` translates, each in its permitted places. */
export const blockTypes = [...shownTypes, 'tool_use', 'tool_result', 'thinking', 'redacted_thinking'];
const shownBlocks = [textBlock, imageBlock, documentBlock, searchResultBlock];
const block = Type.Union([
  ...shownBlocks,
  Type.Object({
    type: Type.Literal('tool_use'),
    id: Type.String(),
    name: Type.String(),
    // A value that is not an object is wrapped in one: some clients send a call back as it was when it began
    // (LangChain).
    input: given,
  }),
  Type.Object({
    type: Type.Literal('tool_result'),
    tool_use_id: Type.String(),
    content: nullable(
      Type.Union([Type.String(), Type.Array(Type.Union([...shownBlocks, otherType(shownTypes)]))]),
    ),
    is_error: flag,
  }),
  Type.Object({ type: Type.Literal('thinking'), thinking: Type.String(), signature: text }),
  Type.Object({ type: Type.Literal('redacted_thinking'), data: Type.String() }),
  otherType(blockTypes),
]);

const roles = ['user', 'assistant'];
const content = Type.Union([Type.String(), Type.Array(block)]);
const message = Type.Union([
  Type.Object({ role: Type.Enum(roles), content }),
  // It may set only the effort.
  Type.Object({
    role: Type.Literal('system'),
    content: nullable(content),
    output_config: nullable(Type.Object({ effort: text })),
    clear_at: text,
  }),
  Type.Object({ role: Type.Unsafe<string>({ type: 'string', not: { enum: [...roles, 'system'] } }) }),
]);

const tool = Type.Union([
  otherType(['custom']),
  // The last member of a union is used for values without a type, and most tools have none.
  Type.Object({
    name,
    input_schema: Type.Object({}),
    type: nullable(Type.Literal('custom')),
    description: text,
    strict: flag,
  }),
]);

const toolChoice = Type.Union([
  Type.Object({ type: Type.Literal('tool'), name, disable_parallel_tool_use: flag }),
  Type.Object({
    type: Type.Unsafe<string>({ type: 'string', not: { enum: ['tool'] } }),
    disable_parallel_tool_use: flag,
  }),
]);

const thinking = Type.Union([
  Type.Object({
    type: Type.Literal('enabled'),
    budget_tokens: Type.Integer({ minimum: 1024 }),
    display: text,
  }),
  otherType(['enabled']),
]);

const outputFormat = Type.Union([
  Type.Object({ type: Type.Literal('json_schema'), schema: Type.Object({}) }),
  otherType(['json_schema']),
]);

/** A conversation that is kept between its requests. Each of them contains only what is new. */
const thread = Type.Union([
  Type.Object({ type: Type.Literal('continue'), previous_message_id: Type.String() }),
  otherType(['continue']),
]);

/** Members that requests for tokens and for answers share. */
const conversation = {
  model: name,
  thread: nullable(thread),
  messages: Type.Array(message, { minItems: 1, maxItems: 100_000 }),
  system: nullable(Type.Union([Type.String(), Type.Array(Type.Union([textBlock, otherType(['text'])]))])),
  tools: nullable(Type.Array(tool)),
  tool_choice: nullable(toolChoice),
  thinking: nullable(thinking),
  output_config: nullable(Type.Object({ effort: text, format: nullable(outputFormat) })),
  output_format: nullable(outputFormat),
};

/** Body of `POST /v1/messages/count_tokens`. */
export const countTokensRequestType = Type.Object(conversation);

/** Body of `POST /v1/messages`. */
export const messagesRequestType = Type.Object({
  ...conversation,
  // Zero warms the prompt cache.
  max_tokens: Type.Integer({ minimum: 0 }),
  stream: flag,
  stop_sequences: nullable(Type.Array(Type.String())),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  top_k: nullable(Type.Integer({ minimum: 0 })),
  metadata: nullable(Type.Object({ user_id: text })),
  service_tier: text,
});

/** Bodies of the other text endpoints, recognised by the member that holds their input. */
const messagesMixedBody: MixedBody = {
  own: 'messages',
  foreign: [bodies.responses, bodies.generateContent, bodies.completions],
};

const members = compileSchema(messagesRequestType, messagesMixedBody, {
  reads: ['container'],
  within: { thread: {}, container: { reads: ['id'] } },
});

/** Check of a messages request body that is translated. */
export const messagesRequest: CompiledSchema = {
  ...members,
  explain(value) {
    const error = members.explain(value);
    if (error.kind !== 'missing_parameter' || error.param !== 'max_tokens') return error;
    // A chat body has the same members, and requires no limit.
    const hint = ' If the body is for POST /v1/chat/completions, send it there.';
    return memberError(error.kind, error.param, error.message + hint);
  },
};

/** Check of the body of a request that counts tokens and is translated. */
export const countTokensRequest = compileSchema(
  countTokensRequestType,
  messagesMixedBody,
  members.guard.spec,
);

/** A thread may replace the messages. */
const passedConversation = { model: name, messages: Type.Optional(given), thread: Type.Optional(given) };

/** Check of every messages request body, and the only one for a body that is passed on untouched. */
export const passedMessagesRequest = withConversation(
  Type.Object({ ...passedConversation, stream: flag, max_tokens: metered }),
);

/** The same for a request that counts tokens. */
export const passedCountTokensRequest = withConversation(Type.Object(passedConversation));

function withConversation(schema: TSchema): CompiledSchema {
  return requiring(compileSchema(schema, messagesMixedBody, members.guard.spec), hasConversation, () =>
    missingValue('messages', 'an array'),
  );
}

function hasConversation(body: unknown): boolean {
  return isObject(body) && (Object.hasOwn(body, 'messages') || (body.thread ?? null) !== null);
}
