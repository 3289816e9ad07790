import { test } from 'tap';
import type { Answer, AnswerPart } from '../../../../src/conversation/answer.js';
import { tagUnsigned } from '../../../../src/conversation/unsigned-reasoning.js';
import { chatCodec } from '../../../../src/protocols/chat/index.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { plainSource } from '../../../conversation/plain.js';
import { context, refusal } from '../samples.js';

const read = (body: JsonObject) => chatCodec.decodeAnswer(body, { ...plainSource, model: 'up' });
const readMessage = (message: JsonObject, more: JsonObject = {}) =>
  read({ choices: [{ index: 0, message, finish_reason: 'stop', ...more }] }).choices[0];
const write = (answer: Answer) => chatCodec.encodeAnswer(answer, context);
const writeParts = (...parts: AnswerPart[]) =>
  JSON.parse(write({ choices: [{ parts, finish: 'stop', stopSequence: null }], usage: null })).choices[0];

const usage = { input: 5, output: 4, cached: 3, cacheWritten: 2, reasoning: 1 };
const lp = { token: 'a', logprob: -0.5, bytes: [97] };
const logprob = { ...lp, top_logprobs: [{ ...lp, bytes: null }] };
const citation = { start: 1, end: 2, url: 'https://h', title: 't' };
const call = (more: object = {}): AnswerPart => ({
  kind: 'toolCall',
  id: 'c1',
  name: 'f',
  input: '{"a":1}',
  custom: false,
  at: '',
  ...more,
});

/** An answer with everything that the protocol can say. */
const whole: Answer = {
  choices: [
    {
      parts: [
        { kind: 'reasoning', text: 'hm', signature: tagUnsigned('reasoning_content', 'up') },
        { kind: 'text', text: 'abc', citations: [citation], logprobs: [logprob] },
        call(),
        call({ id: 'c2', name: 'g', input: 'free', custom: true }),
      ],
      finish: 'toolCalls',
      stopSequence: null,
    },
    { parts: [{ kind: 'refusal', text: 'no' }], finish: 'filtered', stopSequence: null },
    { parts: [], finish: 'length', stopSequence: null },
  ],
  usage,
};

test('an answer is written as the protocol spells it', async (t) => {
  t.equal(
    write(whole),
    '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[' +
      '{"index":0,"message":{"role":"assistant","content":"abc","refusal":null,' +
      '"annotations":[{"type":"url_citation","url_citation":{"start_index":1,"end_index":2,"url":"https://h","title":"t"}}],' +
      '"reasoning_content":"hm","tool_calls":[' +
      '{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}},' +
      '{"id":"c2","type":"custom","custom":{"name":"g","input":"free"}}]},' +
      '"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":null}]}],"refusal":null},' +
      '"finish_reason":"tool_calls"},' +
      '{"index":1,"message":{"role":"assistant","content":null,"refusal":"no"},"logprobs":null,"finish_reason":"content_filter"},' +
      '{"index":2,"message":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":"length"}],' +
      '"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9,' +
      '"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},' +
      '"completion_tokens_details":{"reasoning_tokens":1}},"system_fingerprint":null}',
  );
});

test('an answer that is written reads the same', async (t) => {
  t.same(read(JSON.parse(write(whole))), whole);
});

test('texts join, and citations move with theirs', async (t) => {
  const { message } = writeParts(
    { kind: 'text', text: 'ab' },
    { kind: 'text', text: 'cd', citations: [citation] },
  );
  t.equal(message.content, 'abcd');
  t.match(message.annotations, [{ url_citation: { start_index: 3, end_index: 4 } }]);
});

test('calls decide the reason, and get an id where they have none', async (t) => {
  const choice = writeParts(call({ id: '' }), call({ id: '' }));
  t.equal(choice.finish_reason, 'tool_calls');
  t.equal(choice.message.content, null);
  t.strictSame(
    choice.message.tool_calls.map(({ id }: { id: string }) => id),
    ['call_1_0', 'call_1_1'],
  );
});

test('reasons to finish', async (t) => {
  const reasons = ['stop', 'stopSequence', 'length', 'filtered', 'paused', 'other'] as const;
  t.strictSame(
    reasons.map(
      (finish) =>
        JSON.parse(write({ choices: [{ parts: [], finish, stopSequence: null }], usage: null })).choices[0]
          .finish_reason,
    ),
    ['stop', 'stop', 'length', 'content_filter', 'length', 'stop'],
  );
  const finish = (reason: unknown, message: JsonObject = {}) =>
    readMessage(message, { finish_reason: reason })?.finish;
  const calls = { tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }] };
  t.strictSame(
    ['stop', 'length', 'content_filter', 'eos', null].map((reason) => finish(reason)),
    ['stop', 'length', 'filtered', 'other', 'other'],
  );
  t.strictSame(
    ['stop', 'tool_calls', 'function_call', null].map((reason) => finish(reason, calls)),
    ['toolCalls', 'toolCalls', 'toolCalls', 'toolCalls'],
  );
  t.equal(finish('length', calls), 'length', 'the call may be cut off');
  t.equal(finish('tool_calls'), 'stop', 'there is no call to wait for');
});

test('usage is left out where there is none', async (t) => {
  const choices = [{ parts: [], finish: 'stop' as const, stopSequence: null }];
  t.notOk('usage' in JSON.parse(write({ choices, usage: null })));
  const plain = { ...usage, cached: 0, cacheWritten: 0, reasoning: 0 };
  t.strictSame(JSON.parse(write({ choices, usage: plain })).usage, {
    prompt_tokens: 5,
    completion_tokens: 4,
    total_tokens: 9,
  });
  const reported = (value: unknown) => read({ choices: [{ message: {} }], usage: value }).usage;
  for (const value of [null, undefined, 7, [], {}, { prompt_tokens: '5' }]) t.equal(reported(value), null);
  t.strictSame(reported({ prompt_tokens: 5, completion_tokens: null, prompt_tokens_details: null }), {
    input: 5,
    output: 0,
    cached: 0,
    cacheWritten: 0,
    reasoning: 0,
  });
});

test('forms of upstreams that are not in the documentation', async (t) => {
  const parts = (message: JsonObject) => readMessage(message)?.parts;
  t.match(parts({ reasoning: 'hm', content: 'x' }), [{ kind: 'reasoning', text: 'hm' }, { text: 'x' }]);
  t.match(parts({ content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }, 7] }), [
    { text: 'ab' },
  ]);
  t.match(parts({ function_call: { name: 'f', arguments: '' } }), [{ name: 'f', input: '{}', id: '' }]);
  t.match(parts({ function_call: { name: 'f', arguments: 'null ' } }), [{ input: '{}' }]);
  t.match(parts({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: null } }] }), [{ input: '{}' }]);
  t.match(parts({ tool_calls: [{ id: 'c', custom: { name: 'f', input: 'null' } }] }), [{ input: 'null' }]);
  t.match(parts({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: { a: 1 } } }] }), [
    { input: '{"a":1}' },
  ]);
  const turned = read({
    choices: [
      { index: 1, message: { content: 'b' } },
      { index: 0, message: { content: 'a' } },
    ],
  });
  t.match(turned.choices, [{ parts: [{ text: 'a' }] }, { parts: [{ text: 'b' }] }]);
});

test('members of a wrong type count as absent', async (t) => {
  for (const odd of [null, 7, true, 'x', [], {}, [null], [7], [{}], [{ function: 7 }], [{ function: {} }]]) {
    const choice = readMessage(
      {
        content: typeof odd === 'string' ? null : odd,
        refusal: typeof odd === 'string' ? null : odd,
        reasoning_content: typeof odd === 'string' ? null : odd,
        tool_calls: odd,
        function_call: odd,
        annotations: odd,
      },
      { logprobs: odd, index: odd },
    );
    t.strictSame(choice, { parts: [], finish: 'stop', stopSequence: null }, JSON.stringify(odd));
  }
  const [text] =
    readMessage(
      { content: 'x', annotations: [7, {}, { url_citation: {} }] },
      { logprobs: { content: [7, {}, { token: 'a', logprob: -1, bytes: ['x'], top_logprobs: [7, {}] }] } },
    )?.parts ?? [];
  t.match(text, {
    citations: undefined,
    logprobs: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }],
  });
});

test('a body without a message is the failure of the upstream', async (t) => {
  for (const choices of [undefined, null, 7, [], [null], [{}], [{ message: 'x' }]])
    t.match(
      refusal(() => read({ choices })),
      { kind: 'upstream_error' },
      JSON.stringify(choices),
    );
  t.match(
    refusal(() => read({ error: { message: 'x', code: 429 } })),
    { kind: 'rate_limit_exceeded' },
  );
  t.match(
    refusal(() => read({ error: 'x' })),
    { kind: 'upstream_error' },
  );
});

test('a usage whose numbers are no counts names no tokens: what it has used is estimated', (t) => {
  const usageOf = (usage: object) =>
    read({ choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'stop' }], usage }).usage;
  for (const [prompt_tokens, completion_tokens] of [
    [-5, -7],
    [1e300, 1e300],
    [-5, 1e300],
  ])
    t.equal(usageOf({ prompt_tokens, completion_tokens }), null);
  t.match(usageOf({ prompt_tokens: 0, completion_tokens: 1e300 }), { input: 0, output: 0 });
  t.match(usageOf({ prompt_tokens: -5, completion_tokens: 3 }), { input: 0, output: 3 });
  t.end();
});
