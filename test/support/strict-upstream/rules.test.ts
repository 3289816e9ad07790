import { test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { readChat } from './chat.js';
import { readGenerateContent } from './generate-content.js';
import { type Memory, newMemory, sign } from './memory.js';
import { bindThinking, readMessages } from './messages.js';
import { readResponses } from './responses.js';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const user = { role: 'user', content: 'Hi' };

/** Bodies that a reader refuses, by its error message. */
type Refused = Readonly<Record<string, JsonObject>>;

const called = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
const assistant = { role: 'assistant', content: null, tool_calls: [called] };
const choice = { type: 'object', properties: {}, anyOf: [schema] };
const shut = { ...schema, additionalProperties: false };
/** Strict by the rules of both OpenAI and Anthropic. */
const wrongly: Readonly<Record<'openai' | 'anthropic', Readonly<Record<string, JsonObject>>>> = {
  openai: {
    additionalProperties: schema,
    'include every key': { ...shut, required: [] },
    "'oneOf' is not permitted": { ...shut, properties: { city: { oneOf: [{ type: 'null' }] } } },
    "must have a 'type' key": { ...shut, properties: { city: {} } },
  },
  anthropic: {
    additionalProperties: schema,
    "'maximum' is not permitted": { ...shut, properties: { city: { type: 'number', maximum: 1 } } },
    minItems: { ...shut, properties: { city: { type: 'array', minItems: 2 } } },
    recursive: { ...shut, properties: { city: { $ref: '#' } } },
    'too many optional': {
      ...shut,
      properties: Object.fromEntries([...Array(26).keys()].map((n) => [n, {}])),
    },
    'union types': { ...shut, properties: { city: { anyOf: Array(17).fill({ type: ['null', 'string'] }) } } },
  },
};
const strictly = (vendor: keyof typeof wrongly, bodyOf: (parameters: JsonObject) => JsonObject): Refused =>
  Object.fromEntries(Object.entries(wrongly[vendor]).map(([words, wrong]) => [words, bodyOf(wrong)]));
const chatTool = (parameters: JsonObject, strict: boolean): JsonObject => ({
  messages: [user],
  tools: [{ type: 'function', function: { name: 'f', strict, parameters } }],
});
const responsesTool = (parameters: JsonObject, strict: boolean): JsonObject => ({
  input: 'Hi',
  tools: [{ type: 'function', name: 'f', strict, parameters }],
});
const messagesTools = (count: number, input_schema: JsonObject, strict: boolean): JsonObject => ({
  max_tokens: 5,
  messages: [user],
  tools: [...Array(count).keys()].map((number) => ({ name: `f${number}`, strict, input_schema })),
});

const lookahead = { ...shut, properties: { city: { type: 'string', pattern: '(?=a)' } } };
const bounded = { ...shut, properties: { city: { type: 'string', maxLength: 3 } } };

const chat: Refused = {
  'look-around is not supported': {
    messages: [user],
    response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: lookahead } },
  },
  'unknown member': { messages: [user], top_k: 1 },
  'without tools': { messages: [user], tool_choice: 'auto' },
  'not between 1 and 128': { messages: [user], tools: [] },
  'does not match': { messages: [user], tools: [{ type: 'function', function: { name: 'a.b' } }] },
  'declared twice': {
    messages: [user],
    tools: [
      { type: 'function', function: { name: 'f' } },
      { type: 'function', function: { name: 'f' } },
    ],
  },
  "'anyOf' at the root": chatTool(choice, false),
  ...strictly('openai', (wrong) => chatTool(wrong, true)),
  'no tool message': { messages: [user, assistant, user] },
  'without a call': { messages: [user, { role: 'tool', tool_call_id: 'c1', content: '' }] },
  'longer than 40': {
    messages: [user, { ...assistant, tool_calls: [{ ...called, id: 'c'.repeat(41) }] }],
  },
  'content: none': { messages: [user, { role: 'assistant', content: null }] },
  'longer than 64': { messages: [user], user: 'u'.repeat(65) },
  'never given out': { messages: [user, { role: 'assistant', content: 'x', reasoning_content: 'y' }] },
};

const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'c1', output: 'x' };
const responses: Refused = {
  'look-around is not supported': {
    input: 'Hi',
    text: { format: { type: 'json_schema', name: 'a', strict: true, schema: lookahead } },
  },
  'unknown member': { input: 'Hi', messages: [] },
  'No tool output found': { input: [user, call] },
  'No tool call found': { input: [user, output] },
  "begins with 'fc'": { input: [user, { ...call, id: 'call_1' }, output] },
  'Duplicate item': {
    input: [
      { ...user, id: 'msg_1' },
      { ...user, id: 'msg_1' },
    ],
  },
  'could not be verified': { input: [{ type: 'reasoning', summary: [], encrypted_content: 'x' }, user] },
  'required following item': {
    input: [{ type: 'reasoning', id: 'rs_1', summary: [] }, user],
  },
  'not persisted': { store: false, input: [{ type: 'reasoning', id: 'rs_1', summary: [] }, call, output] },
  'Invalid value': { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }] },
  'below 16': { input: 'Hi', max_output_tokens: 1 },
  "'anyOf' at the root": responsesTool(choice, false),
  ...strictly('openai', (wrong) => responsesTool(wrong, true)),
};

const use = { type: 'tool_use', id: 't1', name: 'f', input: {} };
const result = { type: 'tool_result', tool_use_id: 't1', content: 'x' };
const thinking = { type: 'thinking', thinking: 'other words', signature: 'c2ln' };
const messages: Refused = {
  "'maxLength' is not permitted": {
    max_tokens: 5,
    messages: [user],
    output_config: { format: { type: 'json_schema', schema: bounded } },
  },
  'max_tokens: none': { messages: [user] },
  'are not supported': {
    model: 'claude-opus-5-5',
    ...messagesTools(1, shut, false),
    tool_choice: { type: 'any' },
  },
  "'anyOf' at the root": messagesTools(1, choice, false),
  'more than 20 strict tools': messagesTools(21, shut, true),
  ...strictly('anthropic', (wrong) => messagesTools(1, wrong, true)),
  'unknown member': { max_tokens: 5, messages: [user], reasoning_effort: 'low' },
  'the first is not': { max_tokens: 5, messages: [{ role: 'assistant', content: 'x' }] },
  'without tool_result': { max_tokens: 5, messages: [user, { role: 'assistant', content: [use] }, user] },
  'unexpected tool_use_id': { max_tokens: 5, messages: [{ role: 'user', content: [result] }] },
  'stands before a tool_result': {
    max_tokens: 5,
    messages: [
      user,
      { role: 'assistant', content: [use] },
      { role: 'user', content: [{ type: 'text', text: 'x' }, result] },
    ],
  },
  'must be unique': {
    max_tokens: 5,
    messages: [
      user,
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result] },
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result] },
    ],
  },
  'not what was signed': { max_tokens: 5, messages: [user, { role: 'assistant', content: [thinking] }] },
  'Invalid signature': {
    max_tokens: 5,
    messages: [user, { role: 'assistant', content: [{ ...thinking, signature: 'x' }] }],
  },
  "expected 'thinking'": {
    max_tokens: 2000,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [user, { role: 'assistant', content: [use] }, { role: 'user', content: [result] }],
  },
  budget_tokens: { max_tokens: 5, thinking: { type: 'enabled', budget_tokens: 1024 }, messages: [user] },
  'maximum of 4': {
    max_tokens: 5,
    messages: [{ role: 'user', content: Array(5).fill({ type: 'text', text: 'x', cache_control: {} }) }],
  },
  'ends in white space': { max_tokens: 5, messages: [user, { role: 'assistant', content: 'x ' }] },
  'not a text with characters': {
    max_tokens: 5,
    messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }],
  },
};

const asked = { role: 'user', parts: [{ text: 'Hi' }] };
const functionCall = { functionCall: { name: 'f', args: {} }, thoughtSignature: 'c2ln' };
const functionResponse = { functionResponse: { name: 'f', response: {} } };
const generateContent: Refused = {
  'contents are required': { contents: [] },
  'must not be empty': { contents: [{ role: 'user', parts: [] }] },
  'unknown member': { contents: [asked], messages: [] },
  'a function call without its response': { contents: [asked, { role: 'model', parts: [functionCall] }] },
  'must be equal': { contents: [asked, { role: 'model', parts: [functionCall] }, asked] },
  'come immediately after': { contents: [{ role: 'user', parts: [functionResponse] }] },
  'missing a thought_signature': {
    contents: [
      asked,
      { role: 'model', parts: [{ functionCall: functionCall.functionCall }] },
      { role: 'user', parts: [functionResponse] },
    ],
  },
  'is not valid': {
    contents: [asked, { role: 'model', parts: [{ ...functionCall, thoughtSignature: 'b3RoZXI=' }] }],
  },
  'Base64 decoding failed': {
    contents: [asked, { role: 'model', parts: [{ text: 'x', thoughtSignature: 'gw1.s' }] }],
  },
  'additionalProperties: unknown member': {
    contents: [asked],
    tools: [
      { functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', additionalProperties: false } }] },
    ],
  },
  "'anyOf' at the root": {
    contents: [asked],
    tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: choice }] }],
  },
  'should be of type OBJECT': {
    contents: [asked],
    tools: [{ functionDeclarations: [{ name: 'f', parameters: { anyOf: [{ type: 'OBJECT' }] } }] }],
  },
  'declared twice': {
    contents: [asked],
    tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'f' }] }],
  },
};

const readers: Readonly<Record<string, [Refused, (body: JsonObject, memory: Memory) => unknown]>> = {
  chat: [chat, readChat],
  responses: [responses, readResponses],
  messages: [messages, (body, memory) => readMessages(body, memory, '')],
  generateContent: [generateContent, readGenerateContent],
};

test('a strict upstream takes what its vendor does', async (t) => {
  const named = { role: 'tool', tool_call_id: 'c1', name: 'f', content: 'x' };
  t.ok(readChat({ model: 'm', messages: [user, assistant, named] }, newMemory()));
  const thinking = { type: 'enabled', budget_tokens: 32_000 };
  const body = { model: 'm', max_tokens: 8000, messages: [user], thinking };
  t.ok(readMessages(body, newMemory(), 'interleaved-thinking-2025-05-14'));
  t.ok(readChat({ model: 'm', ...chatTool(shut, true) }, newMemory()));
  t.ok(readResponses({ model: 'm', ...responsesTool(shut, true) }, newMemory()));
  t.ok(readMessages({ model: 'm', ...messagesTools(20, shut, true) }, newMemory(), ''));
  t.throws(() => readMessages(body, newMemory(), 'context-1m-2025-08-07'));
  const thinkingConfig = { thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED' };
  t.ok(readGenerateContent({ contents: [asked], generationConfig: { thinkingConfig } }, newMemory()));
});

for (const [wire, [refused, read]] of Object.entries(readers))
  test(`a strict ${wire} upstream refuses what its vendor does`, async (t) => {
    for (const [words, body] of Object.entries(refused)) {
      const memory = newMemory();
      memory.signed.set('c2ln', 'words');
      try {
        read({ model: 'm', ...body }, memory);
        t.fail(`it was taken: ${words}`);
      } catch (fault) {
        t.match(String(fault), words);
      }
    }
  });

test('thinking is refused behind what was not before it, unless it may be dropped', async (t) => {
  const memory = newMemory();
  const begun = { model: 'claude-opus-5-5', max_tokens: 5, system: 'Be brief.', messages: [user] };
  const thought = { type: 'thinking', thinking: 'So', signature: sign(memory, 'So') };
  bindThinking(begun, { content: [thought] }, memory);
  const next = { ...begun, messages: [user, { role: 'assistant', content: [thought] }, user] };
  t.ok(readMessages(next, memory, ''));
  const reordered = Object.fromEntries(Object.entries(user).reverse());
  t.ok(readMessages({ ...next, messages: [reordered, ...next.messages.slice(1)] }, memory, ''));
  const changed = { ...next, system: 'Be long.' };
  t.throws(() => readMessages(changed, memory, ''), { message: /bound to a different conversation/ });
  const thinking = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
  t.ok(readMessages({ ...changed, thinking }, memory, 'thinking-binding-controls-2026-08-01'));
  t.throws(() => readMessages({ ...changed, thinking }, memory, ''), { message: /block_binding: unknown/ });
});
