import type { TextProtocolName } from '../../src/conversation/request.js';
import type { JsonObject } from '../../src/wire/json.js';
import { at, listAt } from '../support/json.js';

/** An upstream that answers a question by a call that it thought about, and refuses the result without the thought. */
export interface Vendor {
  readonly name: string;
  readonly kind: 'chat' | 'messages' | 'generateContent';
  /** Protocol in which it is called by clients of others. */
  readonly wire: TextProtocolName;
  /** Merged over the model's target. */
  readonly target: JsonObject;
  /** Why a body is refused, or null. */
  refusal(body: unknown): string | null;
  /** Whether the body has a result to answer. */
  isAnswered(body: unknown): boolean;
  /** The answer whole, or the events of a stream. */
  call(body: unknown): readonly JsonObject[];
  callEvents(body: unknown): readonly JsonObject[];
  readonly said: readonly JsonObject[];
  readonly saidEvents: readonly JsonObject[];
}

export const thought = 'First “look”.\nThen 🌍 tell.';
const half = Math.floor(thought.length / 2);
const args = { city: 'Rome' };

/** DeepSeek and Kimi, each by its own name of the member. */
function chatVendor(name: 'reasoning_content' | 'reasoning'): Vendor {
  const calls = [{ id: 'c1', type: 'function', function: { name: 'look', arguments: JSON.stringify(args) } }];
  const whole = (message: JsonObject, reason: string) => ({
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason }],
  });
  const piece = (delta: JsonObject, reason: string | null = null) => ({
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  return {
    name,
    kind: 'chat',
    wire: 'chat',
    target: {},
    refusal: (body) =>
      listAt(body, 'messages').every(
        (message) => message.tool_calls === undefined || message[name] === thought,
      )
        ? null
        : `The \`${name}\` in the thinking mode must be passed back to the API.`,
    isAnswered: (body) => listAt(body, 'messages').some(({ role }) => role === 'tool'),
    call: () => [whole({ content: '', [name]: thought, tool_calls: calls }, 'tool_calls')],
    callEvents: () => [
      piece({ role: 'assistant', content: '' }),
      piece({ [name]: thought.slice(0, half), content: null }),
      piece({ [name]: thought.slice(half), content: null }),
      piece({ tool_calls: calls.map((call, index) => ({ index, ...call })) }),
      piece({}, 'tool_calls'),
    ],
    said: [whole({ content: 'sunny' }, 'stop')],
    saidEvents: [piece({ content: 'sunny' }), piece({}, 'stop')],
  };
}

/** Gemini by its chat interface: the signature stands beside the call. */
function signedCallVendor(): Vendor {
  const vendor = chatVendor('reasoning');
  const signed = { extra_content: { google: { thought_signature: 'U0lHTg==' } } };
  const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: JSON.stringify(args) } };
  const calls = [
    { index: 0, ...call, ...signed },
    { index: 1, ...call, id: 'c2' },
  ];
  const choice = (message: JsonObject) => ({ index: 0, ...message, finish_reason: 'tool_calls' });
  return {
    ...vendor,
    name: 'signed-calls',
    refusal(body) {
      const called = listAt(body, 'messages').flatMap((message) => listAt(message, 'tool_calls'));
      const isGood = called.every((each, index) =>
        index === 0
          ? at(each, 'extra_content', 'google', 'thought_signature') === 'U0lHTg=='
          : each.extra_content === undefined,
      );
      return isGood ? null : 'Function call is missing a thought_signature in functionCall parts.';
    },
    call: () => [{ choices: [choice({ message: { role: 'assistant', content: null, tool_calls: calls } })] }],
    callEvents: () => [
      { object: 'chat.completion.chunk', choices: [choice({ delta: { tool_calls: calls } })] },
    ],
  };
}

/**
 * OpenRouter with a model whose vendor signs its reasoning.
 * @param isLate a stream has the encrypted entry after the call, and repeats it
 */
function detailsVendor(isLate: boolean): Vendor {
  const vendor = chatVendor('reasoning');
  const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: JSON.stringify(args) } };
  const words = { type: 'reasoning.text', text: thought, index: 0, format: 'google-gemini-v1' };
  const sealed = { type: 'reasoning.encrypted', data: 'U0lHTg==', id: 'c1', index: 0 };
  const choice = (message: JsonObject, finish_reason: string | null = null) => ({
    choices: [{ index: 0, ...message, finish_reason }],
  });
  const delta = (members: JsonObject, reason?: string) => choice({ delta: members }, reason);
  return {
    ...vendor,
    name: isLate ? 'late-details' : 'details',
    refusal: (body) =>
      listAt(body, 'messages').every(
        ({ tool_calls, reasoning, reasoning_details: details }) =>
          tool_calls === undefined ||
          (reasoning === thought && JSON.stringify(details) === JSON.stringify([words, sealed])),
      )
        ? null
        : 'Gemini models require OpenRouter reasoning details to be preserved in each request.',
    call: () => {
      const members = { content: '', reasoning: thought, reasoning_details: [words, sealed] };
      return [choice({ message: { role: 'assistant', ...members, tool_calls: [call] } }, 'tool_calls')];
    },
    callEvents: () => [
      ...[thought.slice(0, half), thought.slice(half)].map((text) =>
        delta({ content: '', reasoning: text, reasoning_details: [{ ...words, text }] }),
      ),
      ...(isLate ? [] : [delta({ content: '', reasoning_details: [sealed] })]),
      delta({ tool_calls: [{ index: 0, ...call }] }),
      ...(isLate ? [delta({ content: '', reasoning_details: [sealed] })] : []),
      delta(isLate ? { reasoning_details: [sealed] } : {}, 'tool_calls'),
    ],
  };
}

/**
 * @param manner `adaptive`: the newest models think as they like; `budget`: the others do when they are asked to;
 * `unsigned`: DeepSeek on this protocol always does, and signs nothing
 */
function messagesVendor(manner: 'adaptive' | 'budget' | 'unsigned'): Vendor {
  const adapts = manner === 'adaptive';
  const isUnsigned = manner === 'unsigned';
  const thinking = { type: 'thinking', thinking: thought, ...(isUnsigned ? {} : { signature: 'U0lH' }) };
  const call = { type: 'tool_use', id: 'toolu_1', name: 'look', input: args };
  const thinks = (body: unknown) => manner !== 'budget' || at(body, 'thinking', 'type') === 'enabled';
  const usage = { input_tokens: 1, output_tokens: 1 };
  const whole = (content: readonly JsonObject[], reason: string) => ({
    type: 'message',
    role: 'assistant',
    content,
    stop_reason: reason,
    usage,
  });
  const events = (blocks: readonly JsonObject[][], reason: string) => [
    { type: 'message_start', message: { usage } },
    ...blocks.flatMap(([block, ...deltas], index) => [
      { type: 'content_block_start', index, content_block: block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: reason }, usage },
    { type: 'message_stop' },
  ];
  const thoughtBlock = [
    { type: 'thinking', thinking: '', ...(isUnsigned ? {} : { signature: '' }) },
    { type: 'thinking_delta', thinking: thought },
    ...(isUnsigned ? [] : [{ type: 'signature_delta', signature: 'U0lH' }]),
  ];
  const callBlock = [
    { ...call, input: {} },
    { type: 'input_json_delta', partial_json: JSON.stringify(args) },
  ];
  return {
    name: manner,
    kind: 'messages',
    wire: 'messages',
    target: { translation: { thinking: adapts ? 'adaptive' : 'budget', unsignedThinking: isUnsigned } },
    refusal(body) {
      if (adapts && at(body, 'thinking', 'type') === 'disabled')
        return '"thinking.type.disabled" is not supported';
      if (adapts && ['temperature', 'top_p', 'top_k'].some((name) => at(body, name) !== undefined))
        return 'sampling is not supported';
      for (const message of listAt(body, 'messages')) {
        const blocks = listAt(message, 'content');
        if (isUnsigned && blocks[0]?.type === 'thinking' && blocks[0].thinking !== thought)
          return 'The `content[].thinking` in the thinking mode must be passed back to the API.';
        if (!isUnsigned && blocks.some(({ type, signature }) => type === 'thinking' && signature !== 'U0lH'))
          return 'Invalid `signature` in `thinking` block';
        if (blocks.some(({ id }) => id !== undefined && !/^[a-zA-Z0-9_-]{1,64}$/.test(String(id))))
          return 'String should match pattern';
        if (thinks(body) && blocks.some(({ type }) => type === 'tool_use') && blocks[0]?.type !== 'thinking')
          return 'Expected `thinking`, but found `tool_use`';
      }
      return null;
    },
    isAnswered: (body) =>
      listAt(body, 'messages').some((message) =>
        listAt(message, 'content').some(({ type }) => type === 'tool_result'),
      ),
    call: (body) => [whole(thinks(body) ? [thinking, call] : [call], 'tool_use')],
    callEvents: (body) => events(thinks(body) ? [thoughtBlock, callBlock] : [callBlock], 'tool_use'),
    said: [whole([{ type: 'text', text: 'sunny' }], 'end_turn')],
    saidEvents: events(
      [
        [
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'sunny' },
        ],
      ],
      'end_turn',
    ),
  };
}

function generateContentVendor(): Vendor {
  const block = (parts: readonly JsonObject[], reason?: string) => ({
    candidates: [{ content: { role: 'model', parts }, finishReason: reason, index: 0 }],
  });
  const call = [{ functionCall: { name: 'look', args }, thoughtSignature: 'U0lHTg==' }];
  const thoughts = (body: unknown) =>
    at(body, 'generationConfig', 'thinkingConfig', 'includeThoughts') === true
      ? [{ text: thought, thought: true }]
      : [];
  return {
    name: 'generateContent',
    kind: 'generateContent',
    wire: 'generateContent',
    target: { translation: { thinking: 'levels' } },
    refusal: (body) =>
      listAt(body, 'contents').every((content) =>
        listAt(content, 'parts').every(
          (part) => part.functionCall === undefined || part.thoughtSignature === 'U0lHTg==',
        ),
      )
        ? null
        : 'Function call is missing a thought_signature in functionCall parts.',
    isAnswered: (body) =>
      listAt(body, 'contents').some((content) =>
        listAt(content, 'parts').some(({ functionResponse }) => functionResponse !== undefined),
      ),
    call: (body) => [block([...thoughts(body), ...call], 'STOP')],
    callEvents: (body) => [block(thoughts(body)), block(call), block([{ text: '' }], 'STOP')],
    said: [block([{ text: 'sunny' }], 'STOP')],
    saidEvents: [block([{ text: 'sunny' }], 'STOP')],
  };
}

/** @param name also of the account for which it encrypts reasoning, which is refused by any other */
function responsesVendor(name: string, mayForget: boolean): Vendor {
  const isEncrypted = (body: unknown) => JSON.stringify(at(body, 'include') ?? '').includes('encrypted');
  const plainReasoning = { type: 'reasoning', id: 'rs_1', summary: [] };
  const reasoning = (body: unknown) =>
    isEncrypted(body) ? { ...plainReasoning, encrypted_content: name } : plainReasoning;
  const call = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'look',
    arguments: JSON.stringify(args),
  };
  const message = {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'sunny', annotations: [] }],
  };
  const whole = (output: readonly JsonObject[]) => ({ object: 'response', status: 'completed', output });
  const events = (output: readonly JsonObject[]) => [
    { type: 'response.created', response: { status: 'in_progress', output: [] } },
    ...output.flatMap((item, index) => [
      { type: 'response.output_item.added', output_index: index, item },
      { type: 'response.output_item.done', output_index: index, item },
    ]),
    { type: 'response.completed', response: whole(output) },
  ];
  return {
    name,
    kind: 'chat',
    wire: 'responses',
    target: { responses: 'only', translation: { encryptedReasoning: true } },
    refusal(body) {
      const items = listAt(body, 'input');
      const thoughts = items.filter(({ type }) => type === 'reasoning');
      if (!thoughts.every((item) => item.id === 'rs_1' && item.encrypted_content === name))
        return 'The encrypted content could not be verified.';
      // The vendor's models go on without it, but begin to think again.
      const forgets = items.some(({ type }) => type === 'function_call') && thoughts.length === 0;
      return forgets && !mayForget && isEncrypted(body) ? 'The reasoning before the call is missing.' : null;
    },
    isAnswered: (body) => listAt(body, 'input').some(({ type }) => type === 'function_call_output'),
    call: (body) => [whole([reasoning(body), call])],
    callEvents: (body) => events([reasoning(body), call]),
    said: [whole([message])],
    saidEvents: events([message]),
  };
}

/** For conversations that another began. */
export const otherAccount = responsesVendor('other-account', true);

export const vendors: readonly Vendor[] = [
  chatVendor('reasoning_content'),
  chatVendor('reasoning'),
  signedCallVendor(),
  detailsVendor(false),
  detailsVendor(true),
  messagesVendor('budget'),
  messagesVendor('adaptive'),
  messagesVendor('unsigned'),
  generateContentVendor(),
  responsesVendor('responses', false),
];
