import { test } from 'tap';
import type { Answer, AnswerPart } from '../../../../src/conversation/answer.js';
import { tokenAsBytes } from '../../../../src/conversation/signature.js';
import { generateContentCodec } from '../../../../src/protocols/generate-content/index.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { plainSource } from '../../../conversation/plain.js';
import { refusalOf } from '../../../support/refusal.js';
import { context, token, usage } from '../samples.js';

const source = { ...plainSource, model: 'g' };
const decode = (body: JsonObject) => generateContentCodec.decodeAnswer(body, source);
const encode = (answer: Answer, showReasoning = true) =>
  JSON.parse(generateContentCodec.encodeAnswer(answer, { ...context, showReasoning })) as JsonObject;
const candidate = (...parts: JsonObject[]) => ({
  content: { role: 'model', parts },
  finishReason: 'STOP',
  index: 0,
});
const answer = (...parts: AnswerPart[]): Answer => ({
  choices: [{ parts, finish: 'stop', stopSequence: null }],
  usage,
});
const call = { kind: 'toolCall' as const, id: 'x', name: 'f', input: '{"a":1}', custom: false, at: '' };

test('a response is read', async (t) => {
  t.same(
    decode({
      candidates: [
        candidate(
          { text: 'h', thought: true },
          { text: 'm', thought: true },
          { text: 'Hel', thoughtSignature: 's' },
          { text: 'lo' },
          { inlineData: { mimeType: 'image/png', data: 'AA==' } },
          { functionCall: { name: 'f', args: { a: 1 } } },
          { functionCall: { id: 'y', name: 'g' }, thoughtSignature: 't' },
        ),
      ],
      usageMetadata: {
        promptTokenCount: 5,
        toolUsePromptTokenCount: 1,
        candidatesTokenCount: 4,
        thoughtsTokenCount: 3,
        cachedContentTokenCount: 2,
        totalTokenCount: 13,
      },
    }),
    {
      choices: [
        {
          parts: [
            { kind: 'reasoning', text: 'hm', signature: token('s') },
            { kind: 'text', text: 'Hello' },
            { kind: 'toolCall', id: '', name: 'f', input: '{"a":1}', custom: false, at: '' },
            { kind: 'reasoning', text: '', signature: token('t').replace('gw1.s.', 'gw1.c.') },
            { kind: 'toolCall', id: 'y', name: 'g', input: '{}', custom: false, at: '' },
          ],
          finish: 'toolCalls',
          stopSequence: null,
        },
      ],
      usage: { input: 6, output: 7, cached: 2, cacheWritten: 0, reasoning: 3 },
    },
  );
});

test('each reason of the vendor is read as an end', async (t) => {
  const finishOf = (finishReason: unknown) => decode({ candidates: [{ finishReason }] }).choices[0]?.finish;
  t.equal(finishOf('STOP'), 'stop');
  t.equal(finishOf('MAX_TOKENS'), 'length');
  t.equal(finishOf('CONTINUATION'), 'length', 'the vendor would go on with it, and was not asked to');
  for (const reason of [
    'SAFETY',
    'PROHIBITED_CONTENT',
    'BLOCKLIST',
    'SPII',
    'IMAGE_SAFETY',
    'LANGUAGE',
    'RECITATION',
    'ESCALATION',
    'MODEL_ARMOR',
    'PUP_LIMITED_DISABLED',
  ])
    t.equal(finishOf(reason), 'filtered', reason);
  for (const reason of ['OTHER', 'NEW', 5, null]) t.equal(finishOf(reason), 'other', String(reason));
  for (const reason of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'])
    t.throws(() => finishOf(reason), { kind: 'upstream_error', message: new RegExp(reason) });
  const reasonOf = (finish: Answer['choices'][0]['finish']) => {
    const body = encode({
      choices: [{ parts: [{ kind: 'text', text: 'a' }], finish, stopSequence: null }],
      usage,
    });
    return (body.candidates as JsonObject[])[0]?.finishReason;
  };
  t.same(
    (['stop', 'stopSequence', 'length', 'toolCalls', 'filtered', 'paused', 'other'] as const).map(reasonOf),
    ['STOP', 'STOP', 'MAX_TOKENS', 'STOP', 'SAFETY', 'MAX_TOKENS', 'STOP'],
  );
});

test('a blocked prompt is an answer that was filtered, both ways', async (t) => {
  const blocked: Answer = { choices: [{ parts: [], finish: 'filtered', stopSequence: null }], usage };
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 };
  t.same(decode({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata }), blocked);
  t.same(encode(blocked), {
    promptFeedback: { blockReason: 'OTHER' },
    usageMetadata,
    modelVersion: 'g',
    responseId: 'r',
  });
});

test('several candidates, in the order of their numbers', async (t) => {
  const body = decode({
    candidates: [
      { ...candidate({ text: 'b' }), index: 1 },
      { ...candidate({ text: 'a' }), index: 0 },
    ],
  });
  t.match(body.choices, [{ parts: [{ text: 'a' }] }, { parts: [{ text: 'b' }] }]);
  t.match(encode(body), {
    candidates: [
      { index: 0, content: { parts: [{ text: 'a' }] } },
      { index: 1, content: { parts: [{ text: 'b' }] } },
    ],
  });
  t.equal(body.usage, null);
});

test('log probabilities', async (t) => {
  const logprobsResult = {
    topCandidates: [
      {
        candidates: [
          { token: 'a', logProbability: -0.5 },
          { token: 'b', logProbability: -1 },
        ],
      },
    ],
    chosenCandidates: [{ token: 'a', logProbability: -0.5 }],
  };
  const top = [
    { token: 'a', logprob: -0.5, bytes: null },
    { token: 'b', logprob: -1, bytes: null },
  ];
  const read = decode({ candidates: [{ ...candidate({ text: 'a' }), logprobsResult }] });
  t.same(read.choices[0]?.parts, [
    { kind: 'text', text: 'a', logprobs: [{ token: 'a', logprob: -0.5, bytes: null, top_logprobs: top }] },
  ]);
  t.same((encode(read).candidates as JsonObject[])[0]?.logprobsResult, logprobsResult);
});

test('a response is written', async (t) => {
  const written = answer(
    { kind: 'reasoning', text: 'hm', signature: 'gw1.s' },
    { kind: 'text', text: 'a' },
    { kind: 'refusal', text: 'no' },
    { kind: 'reasoning', text: '', signature: 'gw1.t' },
    call,
    { ...call, id: '', input: 'not json' },
    { kind: 'reasoning', text: '', signature: 'gw1.u' },
  );
  const parts = [
    { text: 'a' },
    { text: 'no', thoughtSignature: tokenAsBytes('gw1.s') },
    { functionCall: { id: 'x', name: 'f', args: { a: 1 } }, thoughtSignature: tokenAsBytes('gw1.t') },
    { functionCall: { id: 'call_r_1', name: 'f', args: { input: 'not json' } } },
    { text: '', thoughtSignature: tokenAsBytes('gw1.u') },
  ];
  t.same(encode(written), {
    candidates: [candidate({ text: 'hm', thought: true }, ...parts)],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
    modelVersion: 'g',
    responseId: 'r',
  });
  t.match(encode(written, false), { candidates: [candidate(...parts)] }, 'thoughts are told only on request');
  t.match(encode(answer()), { candidates: [candidate({ text: '' })] });
});

test('a signature without a call behind it stands on the last text, as the vendor writes it', async (t) => {
  const thought = { kind: 'reasoning', text: '', signature: 'gw1.s' } as const;
  const text = { kind: 'text', text: 'a' } as const;
  const thoughtSignature = tokenAsBytes('gw1.s');
  const partsOf = (...parts: Parameters<typeof answer>) => encode(answer(...parts)).candidates;
  t.match(partsOf(thought, text), [{ content: { parts: [{ text: 'a', thoughtSignature }] } }]);
  const behind = partsOf(text, thought);
  t.strictSame(behind, [candidate({ text: 'a' }, { text: '', thoughtSignature })], 'not on one before it');
});

test('usage is written with its parts', async (t) => {
  t.same(
    encode({ ...answer(), usage: { input: 10, output: 7, cached: 4, cacheWritten: 0, reasoning: 3 } })
      .usageMetadata,
    {
      promptTokenCount: 10,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 3,
      cachedContentTokenCount: 4,
      totalTokenCount: 17,
    },
  );
});

test('a body that is no answer is an error, and odd members are none', async (t) => {
  for (const body of [
    {},
    { candidates: [] },
    { candidates: [5, null] },
    { candidates: {} },
    { promptFeedback: {} },
  ])
    t.equal(refusalOf(() => decode(body))?.kind, 'upstream_error', JSON.stringify(body));
  t.equal(refusalOf(() => decode({ error: { status: 'RESOURCE_EXHAUSTED' } }))?.kind, 'rate_limit_exceeded');
  for (const odd of [
    { content: 5 },
    { content: { parts: 5 }, index: 'a' },
    { content: { parts: [null, 5, {}, { text: 5 }, { functionCall: 5 }, { functionCall: { name: '' } }] } },
    { content: null, logprobsResult: { chosenCandidates: [null, {}], topCandidates: 5 } },
  ])
    t.same(decode({ candidates: [odd], usageMetadata: 'x' }), {
      choices: [{ parts: [], finish: 'other', stopSequence: null }],
      usage: null,
    });
});

test('counts that no upstream can mean make no answer that is no JSON', async (t) => {
  const usageMetadata = {
    promptTokenCount: 1e308,
    toolUsePromptTokenCount: 1e308,
    candidatesTokenCount: 1e308,
    thoughtsTokenCount: 1e308,
  };
  const decodedWith = (usage: object) =>
    decode({ candidates: [candidate({ text: 'x' })], usageMetadata: usage });
  t.equal(decodedWith(usageMetadata).usage, null);
  const decoded = decodedWith({ ...usageMetadata, promptTokenCount: 5 });
  t.match(decoded.usage, { input: 5, output: 0 });
  t.match(encode(decoded).usageMetadata, { promptTokenCount: 5, candidatesTokenCount: 0 });
});

test('a call that the token limit cut is left out, since clients run each call that they get', async (t) => {
  const tools = [
    { name: 'f', description: null, parameters: { type: 'object', properties: { a: {} } }, strict: null },
    { name: 'now', description: null, parameters: { type: 'object', properties: {} }, strict: null },
    ...Object.entries({
      any: { additionalProperties: { type: 'string' } },
      some: { anyOf: [{ type: 'null' }, { properties: { a: {} } }] },
      needy: { required: ['a'] },
      loose: { properties: {}, additionalProperties: {} },
      none: { properties: {}, anyOf: [{ type: 'object', properties: {} }, { type: 'null' }], allOf: [] },
    }).map(([name, parameters]) => ({ name, description: null, parameters, strict: null })),
  ];
  const written = (finish: 'length' | 'toolCalls', ...parts: AnswerPart[]) => {
    const of = { choices: [{ parts, finish, stopSequence: null }], usage };
    const { candidates } = JSON.parse(generateContentCodec.encodeAnswer(of, { ...context, tools })) as {
      candidates: { content: { parts: JsonObject[] }; finishReason: string }[];
    };
    return candidates[0];
  };
  const cut = { ...call, input: '{"pattern":"/tmp/*","dry_run":tr' };
  const empty = { ...call, input: '{}' };
  const signed = { kind: 'reasoning' as const, text: '', signature: token('s') };
  for (const name of ['any', 'some', 'needy'])
    t.strictSame(written('length', { kind: 'text', text: 'a' }, { ...empty, name })?.content.parts, [
      { text: 'a' },
    ]);
  for (const name of ['loose', 'none', 'now'])
    t.match(written('length', { ...empty, name })?.content.parts, [{ functionCall: { name } }]);
  for (const last of [cut, empty]) {
    const { content, finishReason } = written('length', { kind: 'text', text: 'a' }, call, last) ?? {};
    t.strictSame(
      content?.parts.map((part) => part.text ?? part.functionCall),
      ['a', { id: 'x', name: 'f', args: { a: 1 } }],
    );
    t.equal(finishReason, 'MAX_TOKENS');
    t.match(written('length', signed, last)?.content.parts, [{ text: '', thoughtSignature: String }]);
    t.match(written('toolCalls', last)?.content.parts, [{ functionCall: { name: 'f' } }]);
    t.match(written('length', last, { kind: 'text', text: 'a' })?.content.parts, [{ functionCall: {} }, {}]);
  }
  t.match(written('length', call)?.content.parts, [{ functionCall: { args: { a: 1 } } }]);
  t.match(written('length', { ...empty, name: 'now' })?.content.parts, [{ functionCall: { args: {} } }]);
});
