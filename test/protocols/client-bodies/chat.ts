import { fc } from '../../support/seed.js';
import {
  anyText,
  type Exchange,
  exchanges,
  flag,
  maybe,
  maybeNull,
  objectOf,
  pdf,
  pictureUrl,
  schema,
  share,
  someText,
  toolName,
} from './parts.js';

/* Bodies of `POST /v1/chat/completions` (types of `openai` 7, `resources/chat/completions`). */

const textPart = objectOf({ type: fc.constant('text'), text: anyText });
const imagePart = objectOf({
  type: fc.constant('image_url'),
  image_url: objectOf({ url: pictureUrl, detail: maybe(fc.constantFrom('auto', 'low', 'high')) }),
});
const filePart = objectOf({
  type: fc.constant('file'),
  file: objectOf({
    file_data: pdf.map((data) => `data:application/pdf;base64,${data}`),
    filename: maybe(fc.constantFrom('a.pdf', '')),
  }),
});
const refusalPart = objectOf({ type: fc.constant('refusal'), refusal: anyText });
const texts = fc.oneof(anyText, fc.array(textPart, { minLength: 1, maxLength: 3 }));
const userContent = fc.oneof(
  anyText,
  fc.array(fc.oneof(textPart, imagePart, filePart), { minLength: 1, maxLength: 3 }),
);
const name = maybe(fc.constantFrom('bob', 'tool_user'));

const instructions = objectOf({ role: fc.constantFrom('system', 'developer'), content: texts, name });
const userMessage = objectOf({ role: fc.constant('user'), content: userContent, name });
const answerMembers = {
  role: fc.constant('assistant'),
  refusal: maybeNull(anyText),
  audio: maybe(fc.constant(null)),
  function_call: maybe(fc.constant(null)),
  annotations: maybe(fc.constant([])),
  reasoning_content: maybeNull(anyText),
  name,
};
const answer = objectOf({
  ...answerMembers,
  content: fc.oneof(texts, fc.array(fc.oneof(textPart, refusalPart), { minLength: 1, maxLength: 2 })),
  tool_calls: maybe(fc.constant(null)),
});

function calling({ calls }: Exchange): fc.Arbitrary<object[]> {
  const results = calls.map(({ id }) =>
    objectOf({
      role: fc.constant('tool'),
      tool_call_id: fc.constant(id),
      // Images there are no type of OpenAI's, but agents send them.
      content: fc.oneof(texts, fc.array(fc.oneof(textPart, imagePart), { minLength: 1, maxLength: 2 })),
      name: maybe(fc.constant('f')),
    }),
  );
  const called = calls.map(({ id, name, input }) =>
    fc
      .boolean()
      .map((isCustom) =>
        isCustom
          ? { id, type: 'custom', custom: { name, input: JSON.stringify(input) } }
          : { id, type: 'function', function: { name, arguments: JSON.stringify(input) } },
      ),
  );
  const message = objectOf({
    ...answerMembers,
    content: maybeNull(texts),
    tool_calls: fc.tuple(...called),
  });
  return fc.tuple(message, ...results);
}

/** The older form: one call, whose result names the function. */
const olderCall: fc.Arbitrary<object[]> = fc.tuple(toolName, anyText).map(([name, content]) => [
  { role: 'assistant', content: null, function_call: { name, arguments: '{}' } },
  { role: 'function', name, content },
]);

const messages: fc.Arbitrary<object[]> = exchanges.chain((all) =>
  fc
    .tuple(
      fc.array(instructions, { maxLength: 2 }),
      ...all.map((exchange) =>
        fc
          .tuple(
            fc.array(userMessage, { maxLength: 2 }),
            exchange.calls.length > 0
              ? calling(exchange)
              : fc.oneof(
                  answer.map((message) => [message]),
                  olderCall,
                ),
            fc.array(instructions, { maxLength: 1 }),
          )
          .map((parts) => parts.flat()),
      ),
      fc.array(userMessage, { maxLength: 1 }),
    )
    .map((parts) => parts.flat())
    .filter((list) => list.length > 0),
);

const functionTool = objectOf({
  type: fc.constant('function'),
  function: objectOf({
    name: toolName,
    description: maybe(anyText),
    parameters: maybe(schema),
    strict: maybeNull(flag),
  }),
});
const customTool = objectOf({
  type: fc.constant('custom'),
  custom: objectOf({
    name: toolName,
    description: maybe(anyText),
    format: maybe(
      fc.constantFrom<object>(
        { type: 'text' },
        { type: 'grammar', grammar: { syntax: 'regex', definition: '[a-z]+' } },
      ),
    ),
  }),
});
const choiceOf = (tools: readonly Record<string, unknown>[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    fc.constantFrom('none', 'auto', 'required'),
    ...tools.map((tool) => {
      const isCustom = tool.type === 'custom';
      const { name: chosen } = (isCustom ? tool.custom : tool.function) as { readonly name: string };
      const named = isCustom
        ? { type: 'custom', custom: { name: chosen } }
        : { type: 'function', function: { name: chosen } };
      return fc.constantFrom<object>(named, {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [named] },
      });
    }),
  );
const tools = fc
  .array(fc.oneof({ weight: 3, arbitrary: functionTool }, customTool), { minLength: 1, maxLength: 3 })
  .chain((list) =>
    objectOf({
      tools: fc.constant(list),
      tool_choice: maybe(choiceOf(list)),
      parallel_tool_calls: maybe(flag),
    }),
  );
const olderTools = objectOf({
  functions: fc.constant([{ name: 'f', parameters: { type: 'object', properties: {} } }]),
  function_call: maybe(fc.constantFrom<unknown>('none', 'auto', { name: 'f' })),
});

const format = fc.oneof(
  fc.constantFrom<object>({ type: 'text' }, { type: 'json_object' }),
  objectOf({
    type: fc.constant('json_schema'),
    json_schema: objectOf({
      name: fc.constantFrom('answer', 'a-b_c'),
      description: maybe(anyText),
      schema: maybe(schema),
      strict: maybeNull(flag),
    }),
  }),
);
const settings = objectOf({
  frequency_penalty: maybeNull(share),
  presence_penalty: maybeNull(fc.constantFrom(-2, 0, 1.5)),
  logit_bias: maybeNull(fc.constant({})),
  logprobs: maybeNull(fc.constant(false)),
  top_logprobs: maybe(fc.constant(null)),
  max_completion_tokens: maybeNull(fc.integer({ min: 1, max: 100_000 })),
  max_tokens: maybe(fc.constant(null)),
  metadata: maybeNull(fc.constantFrom({}, { a: 'b' })),
  modalities: maybeNull(fc.constant(['text'])),
  audio: maybe(fc.constant(null)),
  n: maybeNull(fc.constant(1)),
  prediction: maybeNull(objectOf({ type: fc.constant('content'), content: texts })),
  prompt_cache_key: maybe(fc.constantFrom('', 'k')),
  prompt_cache_retention: maybeNull(fc.constantFrom('in_memory', '24h')),
  reasoning_effort: maybeNull(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
  response_format: maybe(format),
  safety_identifier: maybe(fc.constantFrom('u', 'x'.repeat(64))),
  seed: maybeNull(fc.integer()),
  service_tier: maybeNull(fc.constantFrom('auto', 'default', 'flex', 'priority')),
  stop: maybeNull(
    fc.oneof(someText, fc.array(fc.oneof(someText, fc.constantFrom('\n', ' ')), { maxLength: 6 })),
  ),
  store: maybeNull(flag),
  stream_options: maybe(fc.constant(null)),
  temperature: maybeNull(fc.constantFrom(0, 0.5, 1, 2)),
  top_p: maybeNull(share),
  user: maybe(fc.constantFrom('', 'u', 'x'.repeat(200))),
  verbosity: maybeNull(fc.constantFrom('low', 'medium', 'high')),
  web_search_options: maybe(
    fc.constantFrom(
      {},
      { search_context_size: 'low', user_location: null },
      { user_location: { type: 'approximate', approximate: { city: 'Rome' } } },
    ),
  ),
  unheard_of: maybeNull(fc.constant({ a: [1] })),
});

export const chatBodies: fc.Arbitrary<Record<string, unknown>> = fc
  .tuple(messages, fc.oneof(fc.constant({}), tools, olderTools), settings)
  .map(([list, declared, set]) => ({ model: 'm', messages: list, ...declared, ...set }));
