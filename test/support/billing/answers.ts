import type { TextProtocolName } from '../../../src/conversation/request.js';
import type { TextPlan } from './plan.js';
import type { Units } from './tariffs.js';

/** An answer of a vendor: its whole form, and the events of its stream. */
interface VendorAnswer {
  readonly whole: object;
  /** Events before the text. */
  readonly head: readonly string[];
  /** One for each piece of the text. */
  readonly texts: readonly string[];
  /** Events after the text, including the usage. */
  readonly tail: readonly string[];
}

/** @param tellsUsage whether the request asked a chat stream for its usage */
type Writer = (plan: TextPlan, tellsUsage: boolean) => VendorAnswer;

/** The answers of each vendor to a plan. */
export const vendorAnswers: Readonly<Record<TextProtocolName, Writer>> = {
  chat: chatAnswer,
  responses: responsesAnswer,
  messages: messagesAnswer,
  generateContent: generateContentAnswer,
};

/** An event whose name is its type. */
interface NamedEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Output tokens that a stream of messages reports in its first event. */
export const outputAtStart = 1;

const args = '{"city":"Rome"}';
const model = 'real';

function plain(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function named(data: NamedEvent): string {
  return `event: ${data.type}\n${plain(data)}`;
}

function chatAnswer(plan: TextPlan, isAsked: boolean): VendorAnswer {
  const { number, units, reasoning, tool, pieces, isUntold } = plan;
  const tellsUsage = isAsked && !isUntold;
  const input = units.fresh + units.cached;
  const usage = {
    prompt_tokens: input,
    completion_tokens: units.output,
    total_tokens: input + units.output,
    prompt_tokens_details: { cached_tokens: units.cached, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 },
    ...(units.searches > 0 ? { num_search_queries: units.searches } : {}),
  };
  const finish = tool ? 'tool_calls' : 'stop';
  const call = { id: `call_${number}`, type: 'function', function: { name: 'weather', arguments: args } };
  const calls = tool ? { tool_calls: [call] } : {};
  const tier = isUntold ? {} : tierOf(units, 'service_tier', 'default');
  const head = { id: `chatcmpl-${number}`, created: 1, model, ...tier };
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    plain({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
      ...(tellsUsage ? { usage: null } : {}),
    });
  const message = { role: 'assistant', content: pieces.join(''), refusal: null, ...calls };
  return {
    whole: {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
      ...(isUntold ? {} : { usage }),
    },
    head: [chunk({ role: 'assistant', content: '' })],
    texts: pieces.map((content) => chunk({ content })),
    tail: [
      ...(tool ? [chunk({ tool_calls: [{ index: 0, ...call }] })] : []),
      chunk({}, finish),
      ...(tellsUsage ? [plain({ ...head, object: 'chat.completion.chunk', choices: [], usage })] : []),
      'data: [DONE]\n\n',
    ],
  };
}

function responsesAnswer({ number, units, reasoning, tool, pieces }: TextPlan): VendorAnswer {
  const input = units.fresh + units.cached;
  const text = pieces.join('');
  const part = { type: 'output_text', text, annotations: [] };
  const item = {
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [part],
  };
  const call = {
    id: `fc_${number}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_${number}`,
    name: 'weather',
    arguments: args,
  };
  const response = (status: string, output: readonly object[], usage: object | null) => ({
    id: `resp_${number}`,
    object: 'response',
    created_at: 1,
    status,
    error: null,
    incomplete_details: null,
    model,
    output,
    tools: [],
    ...tierOf(units, 'service_tier', status === 'completed' ? 'default' : 'auto', status === 'completed'),
    usage,
  });
  const searches = Array.from({ length: units.searches }, (_, index) => ({
    id: `ws_${number}_${index}`,
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: `news ${index}` },
  }));
  const more = [...(tool ? [call] : []), ...searches];
  const whole = response('completed', [item, ...more], {
    input_tokens: input,
    input_tokens_details: { cached_tokens: units.cached },
    output_tokens: units.output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + units.output,
  });
  const place = { output_index: 0, item_id: item.id, content_index: 0 };
  const events = [
    { type: 'response.created', response: response('in_progress', [], null) },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
  ];
  const ends = [
    { type: 'response.output_text.done', ...place, text },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', output_index: 0, item },
    ...(tool
      ? [
          { type: 'response.output_item.added', output_index: 1, item: { ...call, arguments: '' } },
          {
            type: 'response.function_call_arguments.done',
            output_index: 1,
            item_id: call.id,
            arguments: args,
          },
          { type: 'response.output_item.done', output_index: 1, item: call },
        ]
      : []),
    ...searches.flatMap((search, index) => {
      const output_index = 1 + (tool ? 1 : 0) + index;
      return [
        { type: 'response.output_item.added', output_index, item: { ...search, status: 'in_progress' } },
        { type: 'response.output_item.done', output_index, item: search },
      ];
    }),
    { type: 'response.completed', response: whole },
  ];
  let sequence_number = 0;
  const numbered = (event: NamedEvent): string => named({ ...event, sequence_number: sequence_number++ });
  return {
    whole,
    head: events.map(numbered),
    texts: pieces.map((delta) => numbered({ type: 'response.output_text.delta', ...place, delta })),
    tail: ends.map(numbered),
  };
}

function messagesAnswer({ number, units, tool, pieces }: TextPlan): VendorAnswer {
  const input = {
    input_tokens: units.fresh,
    cache_creation_input_tokens: units.cacheWritten + units.cacheWrittenHour,
    cache_read_input_tokens: units.cached,
    cache_creation: {
      ephemeral_5m_input_tokens: units.cacheWritten,
      ephemeral_1h_input_tokens: units.cacheWrittenHour,
    },
    ...(units.tier === 'fast' ? { speed: 'fast' } : tierOf(units, 'service_tier', 'standard')),
  };
  const used = {
    output_tokens: units.output,
    ...(units.searches > 0 ? { server_tool_use: { web_search_requests: units.searches } } : {}),
  };
  const call = {
    type: 'tool_use',
    id: `toolu_${number}`,
    name: 'weather',
    input: JSON.parse(args) as object,
  };
  const head = { id: `msg_${number}`, type: 'message', role: 'assistant', model };
  const stop = { stop_reason: tool ? 'tool_use' : 'end_turn', stop_sequence: null };
  const text = { type: 'text', text: pieces.join('') };
  return {
    whole: {
      ...head,
      content: tool ? [text, call] : [text],
      ...stop,
      usage: { ...input, ...used },
    },
    head: [
      named({
        type: 'message_start',
        message: {
          ...head,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...input, output_tokens: outputAtStart },
        },
      }),
      named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ],
    texts: pieces.map((piece) =>
      named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } }),
    ),
    tail: [
      named({ type: 'content_block_stop', index: 0 }),
      ...(tool
        ? [
            named({ type: 'content_block_start', index: 1, content_block: { ...call, input: {} } }),
            named({
              type: 'content_block_delta',
              index: 1,
              delta: { type: 'input_json_delta', partial_json: args },
            }),
            named({ type: 'content_block_stop', index: 1 }),
          ]
        : []),
      named({ type: 'message_delta', delta: stop, usage: used }),
      named({ type: 'message_stop' }),
    ],
  };
}

function generateContentAnswer({ units, reasoning, tool, pieces }: TextPlan): VendorAnswer {
  const input = units.fresh + units.cached;
  const usageMetadata = {
    promptTokenCount: input,
    candidatesTokenCount: units.output - reasoning,
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
    ...(units.cached > 0 ? { cachedContentTokenCount: units.cached } : {}),
    totalTokenCount: input + units.output,
    ...tierOf(units, 'serviceTier', 'standard'),
  };
  const queries = Array.from({ length: units.searches }, (_, index) => `news ${index}`);
  const grounding = queries.length === 0 ? {} : { groundingMetadata: { webSearchQueries: queries } };
  const call = { functionCall: { name: 'weather', args: JSON.parse(args) as object } };
  const answer = (parts: readonly object[], more: object = {}, usage: object = {}): object => ({
    candidates: [{ index: 0, content: { role: 'model', parts }, ...more }],
    ...usage,
    modelVersion: model,
  });
  const finished = { finishReason: 'STOP', ...grounding };
  const text = { text: pieces.join('') };
  return {
    whole: answer(tool ? [text, call] : [text], finished, { usageMetadata }),
    head: [],
    texts: pieces.map((piece) => plain(answer([{ text: piece }]))),
    tail: [plain(answer(tool ? [call] : [{ text: '' }], finished, { usageMetadata }))],
  };
}

/** The member in which an answer reports its service tier. @param usual the word of the standard tier */
function tierOf({ tier }: Units, name: string, usual: string, isKnown = true): object {
  return { [name]: tier === 'standard' || !isKnown ? usual : tier };
}
