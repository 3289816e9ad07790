import { test } from 'tap';
import type { Answer, AnswerPart } from '../../../../src/conversation/answer.js';
import { untagSignature } from '../../../../src/conversation/signature.js';
import { responsesCodec } from '../../../../src/protocols/responses/index.js';
import { plainSource } from '../../../conversation/plain.js';
import { refusalOf } from '../../../support/refusal.js';
import { context } from '../conversation.js';
import { callSteps, encodeAll, end, finish, start, textStep, usage, usageObject } from '../steps.js';

const source = { ...plainSource, model: 'up' };
const decodeAnswer = (body: object) => responsesCodec.decodeAnswer(body as Record<string, unknown>, source);
const answerOf = (parts: readonly AnswerPart[], more: object = {}): Answer => ({
  choices: [{ parts, finish: 'stop', stopSequence: null, ...more }],
  usage: usage.usage,
});
const encodeAnswer = (answer: Answer, more: object = {}) =>
  JSON.parse(responsesCodec.encodeAnswer(answer, { ...context, ...more })) as Record<string, unknown>;
const call = { kind: 'toolCall', id: 'call_7', name: 'f', input: '{"a":1}', custom: false, at: '' } as const;

test('every item of an answer is decoded, and those of the upstream’s own tools are passed over', async (t) => {
  const token = {
    token: 'a',
    logprob: -1,
    bytes: [97],
    top_logprobs: [{ token: 'b', logprob: -2, bytes: null }],
  };
  const citation = { type: 'url_citation', start_index: 0, end_index: 1, url: 'https://a', title: 'A' };
  const answer = decodeAnswer({
    status: 'completed',
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ text: 'a' }, { text: 'b' }], encrypted_content: 'gAAA' },
      { type: 'web_search_call', id: 'ws_1' },
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'a', annotations: [citation, {}], logprobs: [token] },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'g', input: 'ls' },
    ],
    usage: usageObject,
  });
  t.same(answer.usage, usage.usage);
  const [choice] = answer.choices;
  t.equal(choice?.finish, 'toolCalls');
  const [reasoning, ...parts] = choice?.parts ?? [];
  t.match(reasoning, { kind: 'reasoning', text: 'a\n\nb' });
  t.match(untagSignature(reasoning?.kind === 'reasoning' ? reasoning.signature : null), {
    protocol: 'responses',
    model: 'up',
    value: 'rs_1:gAAA',
  });
  t.same(parts, [
    {
      kind: 'text',
      text: 'a',
      citations: [{ start: 0, end: 1, url: 'https://a', title: 'A' }],
      logprobs: [token],
    },
    { kind: 'refusal', text: 'no' },
    { kind: 'toolCall', id: 'c1', name: 'f', input: '{}', custom: false, at: 'output[3]' },
    { kind: 'toolCall', id: 'c2', name: 'g', input: 'ls', custom: true, at: 'output[4]' },
  ]);
});

test('the status and its reason say why an answer ended', async (t) => {
  const decodeFinish = (body: object) => decodeAnswer({ output: [], ...body }).choices[0]?.finish;
  t.equal(decodeFinish({ status: 'completed' }), 'stop');
  t.equal(decodeFinish({}), 'stop');
  const incomplete = (reason: string) => ({ status: 'incomplete', incomplete_details: { reason } });
  t.equal(decodeFinish(incomplete('max_output_tokens')), 'length');
  t.equal(decodeFinish(incomplete('content_filter')), 'filtered');
  t.equal(decodeFinish(incomplete('steered')), 'paused', 'not finished');
  const output = [{ type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }];
  t.equal(decodeFinish({ ...incomplete('steered'), output }), 'toolCalls');
  t.equal(decodeAnswer({ output: [] }).usage, null);
});

test('an answer that is none is an error', async (t) => {
  const kinds: [object, string, string][] = [
    [{}, 'upstream_error', 'not of the responses protocol'],
    [{ output: 'x' }, 'upstream_error', 'not of the responses protocol'],
    [{ status: 'failed', output: [] }, 'upstream_error', 'answered with an error'],
    [{ error: { code: 'rate_limit_exceeded', message: 'slow' } }, 'rate_limit_exceeded', 'slow'],
    [{ status: 'in_progress', output: [] }, 'upstream_error', 'in_progress'],
    [{ error: { code: 'context_length_exceeded', message: 'long' } }, 'invalid_request', 'long'],
  ];
  for (const [body, kind, message] of kinds)
    t.match(
      refusalOf(() => decodeAnswer(body)),
      { kind, message },
    );
});

test('whatever stands in the items, none of it is fatal', async (t) => {
  const output = [
    null,
    5,
    {},
    { type: 'message' },
    { type: 'message', content: [null, {}, { type: 'output_text' }] },
  ];
  const odd = [{ type: 'function_call' }, { type: 'reasoning', summary: 5, encrypted_content: {} }];
  t.match(decodeAnswer({ output: [...output, ...odd], usage: 'x' }).choices[0]?.parts, [
    { kind: 'text', text: '' },
    { kind: 'toolCall', id: '', name: '', input: '{}' },
  ]);
});

test('a whole answer is what its stream ends with', async (t) => {
  t.intercept(Date, 'now', { value: () => 1_796_000_000_000 });
  const parts: AnswerPart[] = [
    { kind: 'reasoning', text: 'hm', signature: 'gw1.token' },
    { kind: 'text', text: 'hi' },
    call,
    { kind: 'text', text: 'bye' },
    { kind: 'refusal', text: 'no' },
  ];
  for (const showReasoning of [true, false]) {
    for (const reason of ['stop', 'length', 'filtered'] as const) {
      const events = encodeAll(
        [
          start,
          { kind: 'reasoning', choice: 0, text: 'hm' },
          { kind: 'signature', choice: 0, signature: 'gw1.token' },
          textStep('hi'),
          ...callSteps,
          textStep('bye'),
          { kind: 'refusal', choice: 0, text: 'no' },
          finish(reason),
          usage,
          end,
        ],
        { ...context, showReasoning },
      );
      t.same(encodeAnswer(answerOf(parts, { finish: reason }), { showReasoning }), events.at(-1)?.response);
    }
  }
});

test('a call at the end of an answer that was cut is incomplete', async (t) => {
  const parts: AnswerPart[] = [{ kind: 'text', text: 'hi' }, call, call];
  const statuses = (finish: string) =>
    (encodeAnswer(answerOf(parts, { finish })).output as { status: string }[]).map(({ status }) => status);
  t.same(statuses('length'), ['completed', 'completed', 'incomplete']);
  t.same(statuses('toolCalls'), ['completed', 'completed', 'completed']);
});

test('sources and log probabilities are kept', async (t) => {
  const token = { token: 'a', logprob: -1, bytes: null, top_logprobs: [] };
  const citation = { start: 0, end: 1, url: 'https://a', title: 'A' };
  const { output } = encodeAnswer(
    answerOf([{ kind: 'text', text: 'a', citations: [citation], logprobs: [token] }]),
  );
  t.match(output, [
    {
      content: [
        {
          annotations: [{ type: 'url_citation', start_index: 0, end_index: 1, url: 'https://a', title: 'A' }],
          logprobs: [token],
        },
      ],
    },
  ]);
});

test('reasoning that may not be shown and has no signature is left out', async (t) => {
  const parts: AnswerPart[] = [{ kind: 'reasoning', text: 'hm', signature: null }];
  t.same(encodeAnswer(answerOf(parts), { showReasoning: false }).output, []);
});

test('what was encoded decodes to the same answer', async (t) => {
  const parts: AnswerPart[] = [{ kind: 'text', text: 'hi' }, call, { kind: 'refusal', text: 'no' }];
  const again = decodeAnswer(encodeAnswer(answerOf(parts, { finish: 'toolCalls' })));
  t.match(
    again,
    answerOf(
      [
        { kind: 'text', text: 'hi' },
        { ...call, at: 'output[1]' },
        { kind: 'refusal', text: 'no' },
      ],
      { finish: 'toolCalls' },
    ),
  );
});

test('a usage whose numbers are no counts names no tokens: what it has used is estimated', (t) => {
  const usageOf = (usage: object) => decodeAnswer({ status: 'completed', output: [], usage }).usage;
  for (const [input_tokens, output_tokens] of [
    [-5, -7],
    [1e300, 1e300],
    [-5, 1e300],
  ])
    t.equal(usageOf({ input_tokens, output_tokens }), null);
  t.match(usageOf({ input_tokens: -5, output_tokens: 3 }), { input: 0, output: 3 });
  t.end();
});
