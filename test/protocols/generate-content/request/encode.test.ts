import { test } from 'tap';
import type { TargetOptions } from '../../../../src/conversation/codec.js';
import type {
  AssistantPart,
  ConversationRequest,
  MediaPart,
  Reasoning,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../../src/conversation/request.js';
import { generateContentCodec } from '../../../../src/protocols/generate-content/index.js';
import { refusalOf } from '../../../support/refusal.js';
import { writeRequest } from '../../write-request.js';
import { encode, encodeTurns, foreignToken, request, target, token } from '../samples.js';

const says = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] });
const answers = (...parts: AssistantPart[]): Turn => ({ role: 'assistant', parts });
const text = (text: string) => ({ kind: 'text' as const, text });
const call = (given: Partial<ToolCallPart> = {}): ToolCallPart => ({
  kind: 'toolCall',
  id: 'call_1',
  name: 'f',
  input: '{"a":1}',
  custom: false,
  at: 'messages[1].tool_calls[0]',
  ...given,
});
const result = (given: Partial<ToolResultPart> = {}): ToolResultPart => ({
  kind: 'toolResult',
  callId: 'call_1',
  name: '',
  content: [text('42')],
  isError: false,
  at: 'messages[2]',
  ...given,
});
const image: MediaPart = {
  kind: 'image',
  source: { kind: 'data', mediaType: 'image/png', data: 'AA==' },
  detail: 'high',
  name: null,
  at: 'messages[2].content[0]',
};
const reasoning = (text: string, signature: string | null) => ({
  kind: 'reasoning' as const,
  text,
  signature,
});
const callPart = { functionCall: { id: 'call_1', name: 'f', args: { a: 1 } } };
const resultOf = (given: Partial<ToolResultPart>, options: Partial<TargetOptions> = {}) =>
  (
    encodeTurns([says('q'), answers(call()), { role: 'user', parts: [result(given)] }], options) as {
      parts: object[];
    }[]
  )[2];

test('settings, with the conversation last', async (t) => {
  const given: Partial<ConversationRequest> = {
    system: ['Be brief.', 'Be kind.'],
    turns: [says('hi')],
    tools: [{ name: 'f', description: 'd', parameters: null, strict: true }],
    toolChoice: { mode: 'named', name: 'f' },
    parallelCalls: false,
    format: { kind: 'schema', name: 'n', description: null, schema: { type: 'string' }, strict: true },
    reasoning: { effort: 'low', budget: null, show: true, summary: null },
    maxTokens: 7,
    temperature: 0,
    topP: 0.9,
    topK: 3,
    stop: ['a', 'b', 'c', 'd', 'e'],
    candidates: 2,
    seed: 4,
    presencePenalty: 1,
    frequencyPenalty: -1,
    logitBias: {},
    logprobs: 3,
    verbosity: 'low',
    user: 'u',
  };
  const body = encode(given);
  t.same(Object.keys(body), ['systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'contents']);
  t.same(body, {
    systemInstruction: { parts: [{ text: 'Be brief.\n\nBe kind.' }] },
    tools: [
      {
        functionDeclarations: [
          { name: 'f', description: 'd', parametersJsonSchema: { type: 'object', properties: {} } },
        ],
      },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    generationConfig: {
      temperature: 0,
      topP: 0.9,
      topK: 3,
      candidateCount: 2,
      maxOutputTokens: 7,
      stopSequences: ['a', 'b', 'c', 'd', 'e'],
      presencePenalty: 1,
      frequencyPenalty: -1,
      seed: 4,
      responseLogprobs: true,
      logprobs: 3,
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'string' },
      thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 },
    },
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  });
  t.equal(
    writeRequest(generateContentCodec, request({ turns: [says('hi')] }), target),
    '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
  );
});

test('models without JSON Schema get the older form', async (t) => {
  const parameters = {
    type: 'object',
    properties: { a: { type: ['string', 'null'] } },
    additionalProperties: false,
  };
  const options = { jsonSchema: false };
  const body = encode(
    {
      tools: [
        { name: 'f', description: null, parameters, strict: null },
        { name: 'g', description: null, parameters: { type: 'object', properties: {} }, strict: null },
        { name: 'h', description: null, parameters: null, strict: null },
      ],
      format: { kind: 'schema', name: null, description: null, schema: parameters, strict: null },
    },
    options,
  );
  const schema = { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true } } };
  t.same(body.tools, [
    { functionDeclarations: [{ name: 'f', parameters: schema }, { name: 'g' }, { name: 'h' }] },
  ]);
  t.same(body.generationConfig, { responseMimeType: 'application/json', responseSchema: schema });
  t.same(encode({ format: { kind: 'object' } }, options).generationConfig, {
    responseMimeType: 'application/json',
  });
});

test('choices of tools are written as modes', async (t) => {
  const tools = [{ name: 'f', description: null, parameters: null, strict: null }];
  const configOf = (toolChoice: ConversationRequest['toolChoice']) =>
    encode({ tools, toolChoice }).toolConfig;
  const config = (mode: string, allowedFunctionNames?: string[]) => ({
    functionCallingConfig: allowedFunctionNames === undefined ? { mode } : { mode, allowedFunctionNames },
  });
  t.same(configOf({ mode: 'none' }), config('NONE'));
  t.same(configOf({ mode: 'auto' }), config('AUTO'));
  t.same(configOf({ mode: 'required' }), config('ANY'));
  t.same(configOf({ mode: 'allowed', names: ['f', 'g'], required: true }), config('ANY', ['f', 'g']));
  t.same(configOf({ mode: 'allowed', names: ['f'], required: false }), config('VALIDATED', ['f']));
  t.equal(encode({ toolChoice: { mode: 'auto' } }).toolConfig, undefined, 'no choice without tools');
  const nothing = { mode: 'allowed' as const, names: [], required: true };
  t.equal(
    refusalOf(() => configOf(nothing))?.param,
    'tool_choice',
    'a list without names would allow every tool',
  );
});

test('a model that refuses to think of nothing gets the least budget that it takes', async (t) => {
  const budgetOf = (model: string, given: Partial<Reasoning>) => {
    const asked: Reasoning = { effort: null, budget: null, show: false, summary: null, ...given };
    return encode({ reasoning: asked }, { model }).generationConfig;
  };
  const none = { effort: 'none' } as const;
  for (const model of ['gemini-2.5-pro', 'models/gemini-2.5-pro-preview-06-05', 'google/gemini-2.5-pro']) {
    for (const given of [none, { ...none, budget: 0 }, { effort: 'low', budget: 100 } as const])
      t.same(budgetOf(model, given), { thinkingConfig: { thinkingBudget: 128 } });
    t.same(budgetOf(model, { effort: 'max' }), { thinkingConfig: { thinkingBudget: -1 } });
    t.same(budgetOf(model, { effort: 'low', budget: 200 }), { thinkingConfig: { thinkingBudget: 200 } });
  }
  for (const model of ['gemini-2.5-flash', 'my-gemini-2.5-pro', 'gemini-2.5-flash-lite'])
    t.same(budgetOf(model, none), { thinkingConfig: { thinkingBudget: 0 } });
});

test('reasoning as a budget or as a level', async (t) => {
  const configOf = (given: Partial<Reasoning>, thinking: TargetOptions['thinking'] = 'budget') => {
    const asked: Reasoning = { effort: null, budget: null, show: false, summary: null, ...given };
    const config = encode({ reasoning: asked }, { thinking }).generationConfig;
    return (config as { thinkingConfig?: object } | undefined)?.thinkingConfig;
  };
  t.same(configOf({ effort: 'none', show: true }), { thinkingBudget: 0 });
  t.same(configOf({ effort: 'minimal' }), { thinkingBudget: 512 });
  t.same(configOf({ effort: 'medium' }), { thinkingBudget: 8192 });
  t.same(configOf({ effort: 'high' }), { thinkingBudget: 24_576 });
  t.same(configOf({ effort: 'max', show: true }), { includeThoughts: true, thinkingBudget: -1 });
  t.same(configOf({ effort: 'low', budget: 2000 }), { thinkingBudget: 2000 });
  t.same(configOf({ effort: 'xhigh', budget: 31_999 }), { thinkingBudget: 24_576 });
  t.same(configOf({ show: true }), { includeThoughts: true });
  t.equal(configOf({}), undefined);
  t.same(configOf({ effort: 'none', show: true }, 'levels'), { thinkingLevel: 'LOW' });
  t.same(configOf({ effort: 'minimal' }, 'levels'), { thinkingLevel: 'MINIMAL' });
  t.same(configOf({ effort: 'medium', budget: 8192, show: true }, 'levels'), {
    includeThoughts: true,
    thinkingLevel: 'MEDIUM',
  });
  t.same(configOf({ effort: 'max' }, 'levels'), { thinkingLevel: 'HIGH' });
  const own = { thinkingLevel: 'XHIGH' };
  t.same(configOf({ effort: 'XHIGH' }, 'levels'), own, "a target's own word, by its rules");
  t.equal(configOf({ effort: 'ultra' }, 'levels'), undefined);
  t.equal(configOf({ effort: 'XHIGH' }), undefined, 'a target with budgets has no words');
});

test('a tool round trip', async (t) => {
  t.same(encodeTurns([says('q'), answers(call()), { role: 'user', parts: [result()] }, answers(text('a'))]), [
    { role: 'user', parts: [{ text: 'q' }] },
    { role: 'model', parts: [callPart] },
    { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'f', response: { result: '42' } } }] },
    { role: 'model', parts: [{ text: 'a' }] },
  ]);
});

test('what a tool gave becomes an object', async (t) => {
  const response = (given: Partial<ToolResultPart>) => {
    const [part] = resultOf(given)?.parts ?? [];
    return (part as { functionResponse?: { response: object } }).functionResponse?.response;
  };
  t.same(response({ content: [text(' {"a":[1]} ')] }), { a: [1] });
  t.same(response({ content: [text('[1]')] }), { result: '[1]' });
  t.same(response({ content: [text('{broken')] }), { result: '{broken' });
  t.same(response({ content: [] }), { result: '' });
  t.same(response({ content: [text('a'), text('b')] }), { result: 'a\nb' });
  t.same(response({ content: [text('{"a":1}')], isError: true }), { error: '{"a":1}' });
  t.same(response({ content: [], isError: true }), { error: 'The tool failed.' });
});

test('large numbers of arguments and results keep their digits', async (t) => {
  const big = '{"n":12345678901234567890}';
  const body = writeRequest(
    generateContentCodec,
    request({
      turns: [answers(call({ input: big })), { role: 'user', parts: [result({ content: [text(big)] })] }],
    }),
    target,
  );
  t.ok(body.includes(`"args":${big}`));
  t.ok(body.includes(`"response":${big}`));
});

test('media of a result stand in it where the model takes them there, else after all results', async (t) => {
  const inlineData = { mimeType: 'image/png', data: 'AA==' };
  t.same(resultOf({ content: [text('see'), image] }, { thinking: 'levels' })?.parts, [
    { functionResponse: { id: 'call_1', name: 'f', response: { result: 'see' }, parts: [{ inlineData }] } },
  ]);
  const two = encodeTurns([
    says('q'),
    answers(call(), call({ id: 'call_2', name: 'g' })),
    { role: 'user', parts: [result({ content: [image] }), result({ callId: 'call_2' }), text('well?')] },
  ]) as { parts: object[] }[];
  t.match(two[2]?.parts, [
    { functionResponse: { name: 'f', response: { result: '' } } },
    { functionResponse: { name: 'g' } },
    { text: 'Attachments of the result of tool call call_1:' },
    { inlineData },
    { text: 'well?' },
  ]);
});

test('turns of one role in a row are one content, and instructions are said by the user', async (t) => {
  const turns: Turn[] = [
    says('a'),
    { role: 'system', text: 'S' },
    says('b'),
    answers(text('c')),
    answers(text(''), { kind: 'refusal', text: 'no' }),
    { role: 'system', text: 'T' },
    answers(text('d')),
  ];
  t.same(encodeTurns(turns), [
    { role: 'user', parts: [{ text: 'a' }, { text: 'S' }, { text: 'b' }] },
    { role: 'model', parts: [{ text: 'c' }, { text: 'no' }] },
    { role: 'user', parts: [{ text: 'T' }] },
    { role: 'model', parts: [{ text: 'd' }] },
  ]);
  t.same(encodeTurns([says(''), answers(text('a'))]), [{ role: 'model', parts: [{ text: 'a' }] }]);
});

test('turns around one without content are one content, since a call must follow the user', async (t) => {
  const turns = [
    says('a'),
    answers(text('b')),
    says(''),
    answers(call()),
    { role: 'user', parts: [result()] },
  ];
  t.match(encodeTurns(turns as Turn[]), [
    { role: 'user', parts: [{ text: 'a' }] },
    { role: 'model', parts: [{ text: 'b' }, { functionCall: {} }] },
    { role: 'user', parts: [{ functionResponse: {} }] },
  ]);
  t.same(encodeTurns([says('a'), answers(text('')), says('b')]), [
    { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] },
  ]);
});

test('results come before instructions that stand between them and their calls', async (t) => {
  const turns: Turn[] = [
    says('q'),
    answers(call()),
    { role: 'system', text: 'S' },
    { role: 'user', parts: [result()] },
  ];
  t.match(encodeTurns(turns), [
    { role: 'user' },
    { role: 'model' },
    { parts: [{ functionResponse: {} }, { text: 'S' }] },
  ]);
});

test('media become inline data, or a file with its URL', async (t) => {
  const url: MediaPart = { ...image, source: { kind: 'url', url: 'https://a/b.png', mediaType: null } };
  const typed: MediaPart = { ...image, source: { kind: 'url', url: 'https://a/c', mediaType: 'image/png' } };
  const pdf: MediaPart = {
    ...image,
    kind: 'document',
    source: { kind: 'data', mediaType: 'application/pdf', data: 'AA==' },
  };
  t.same(encodeTurns([{ role: 'user', parts: [image, url, typed, pdf] }, answers(image)]), [
    {
      role: 'user',
      parts: [
        { inlineData: { mimeType: 'image/png', data: 'AA==' } },
        { fileData: { fileUri: 'https://a/b.png' } },
        { fileData: { fileUri: 'https://a/c', mimeType: 'image/png' } },
        { inlineData: { mimeType: 'application/pdf', data: 'AA==' } },
      ],
    },
    { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] },
  ]);
});

test('signatures go back to their vendor on the part after the reasoning', async (t) => {
  const partsOf = (parts: AssistantPart[], thinking: TargetOptions['thinking'] = 'budget') =>
    (encodeTurns([says('q'), answers(...parts)], { thinking }) as { parts: object[] }[])[1]?.parts;
  const thought = { text: 'hm', thought: true };
  t.same(partsOf([reasoning('hm', token('s')), call(), call({ id: 'call_2' })]), [
    thought,
    { ...callPart, thoughtSignature: 's' },
    { functionCall: { ...callPart.functionCall, id: 'call_2' } },
  ]);
  t.same(partsOf([reasoning('', token('s')), text('a')]), [{ text: 'a', thoughtSignature: 's' }]);
  t.same(partsOf([text('a'), reasoning('', token('s'))]), [
    { text: 'a' },
    { text: '', thoughtSignature: 's' },
  ]);
  t.same(partsOf([reasoning('', token('s')), reasoning('hm', token('t')), text('a')]), [
    { text: '', thoughtSignature: 's' },
    thought,
    { text: 'a', thoughtSignature: 't' },
  ]);
  for (const foreign of [foreignToken, 'raw', null])
    t.same(partsOf([reasoning('hm', foreign), text('a')]), [{ text: 'a' }], String(foreign));
  const spare = { thoughtSignature: 'skip_thought_signature_validator' };
  t.same(
    partsOf([reasoning('hm', foreignToken), call(), call({ id: 'call_2' })], 'levels'),
    [{ ...callPart, ...spare }, { functionCall: { ...callPart.functionCall, id: 'call_2' } }],
    'models that insist on a signature get the one that is for calls of others',
  );
  t.same(partsOf([reasoning('', token('s')), call()], 'levels'), [{ ...callPart, thoughtSignature: 's' }]);
});

test('the signature of a call stands on the call where a client puts its reasoning before the text', (t) => {
  const partsOf = (parts: AssistantPart[], thinking: TargetOptions['thinking'] = 'budget') =>
    (encodeTurns([says('q'), answers(...parts)], { thinking }) as { parts: object[] }[])[1]?.parts;
  const ofCall = reasoning('', token('s').replace('gw1.s.', 'gw1.c.'));
  const second = { functionCall: { ...callPart.functionCall, id: 'call_2' } };
  for (const thinking of ['budget', 'levels'] as const)
    t.same(partsOf([ofCall, text('a'), call(), call({ id: 'call_2' })], thinking), [
      { text: 'a' },
      { ...callPart, thoughtSignature: 's' },
      second,
    ]);
  t.same(partsOf([reasoning('', token('t')), text('a'), ofCall, call()]), [
    { text: 'a', thoughtSignature: 't' },
    { ...callPart, thoughtSignature: 's' },
  ]);
  t.same(partsOf([ofCall, text('a')]), [{ text: 'a' }, { text: '', thoughtSignature: 's' }]);
  t.end();
});

test('what the protocol cannot say is refused by the field of the client', async (t) => {
  const refusals: [Partial<ConversationRequest>, string][] = [
    [{ logitBias: { 50256: -100 } }, 'logit_bias'],
    [{ hostedTools: [{ type: 'web_search', at: 'tools[0]' }] }, 'tools[0]'],
    [{ from: 'messages', turns: [] }, 'messages'],
    [{ from: 'messages', turns: [says('')] }, 'messages'],
  ];
  for (const [given, param] of refusals) {
    const refusal = refusalOf(() => encode(given));
    t.equal(refusal?.status, 400, JSON.stringify(given));
    t.equal(refusal?.param, param, JSON.stringify(given));
  }
  t.equal(
    encode({ hostedTools: [{ type: 'web_search', at: 'tools[0]' }] }, { hostedTools: 'drop' }).tools,
    undefined,
  );
});

test('arguments that are no object are put into one', async (t) => {
  for (const [input, args] of [
    [' ', {}],
    ['[1]', { input: [1] }],
    ['{"a"', { input: '{"a"' }],
  ] as const)
    t.match(encodeTurns([says('q'), answers(call({ input }))]), [
      {},
      { parts: [{ functionCall: { args } }] },
      {},
    ]);
});

test('a conversation that begins with a call has a text of the user before it', async (t) => {
  t.match(encodeTurns([answers(call())]), [
    { role: 'user', parts: [{ text: '(The conversation begins here.)' }] },
    { role: 'model' },
    { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'f', response: { error: String } } }] },
  ]);
});

test('numbers that must be whole are rounded', async (t) => {
  t.same(
    encode({
      topK: 39.6,
      maxTokens: 6.6,
      seed: 1.2,
      reasoning: { effort: 'low', budget: 1024.5, show: false, summary: null },
    }).generationConfig,
    { topK: 40, maxOutputTokens: 7, seed: 1, thinkingConfig: { thinkingBudget: 1025 } },
  );
});

test('a form of any object is no schema for models without JSON Schema', async (t) => {
  const format = {
    kind: 'schema' as const,
    name: 'n',
    description: null,
    schema: { type: 'object' },
    strict: null,
  };
  t.same(encode({ format }, { jsonSchema: false }).generationConfig, {
    responseMimeType: 'application/json',
  });
});
