import { test } from 'tap';
import { compactResponses, responsesCodec } from '../../../src/protocols/responses/index.js';
import { createSealer } from '../../../src/wire/seal.js';
import { refusalOf } from '../../support/refusal.js';
import { context, decode, encode, sealer } from './conversation.js';

const compactCodec = compactResponses.translation?.codec ?? responsesCodec;
const tools = [{ type: 'function', name: 'f', parameters: {} }, { type: 'web_search' }];
const usage = { input: 5, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 };
const answer = {
  choices: [
    {
      parts: [{ kind: 'text' as const, text: 'We were in Oslo.' }],
      finish: 'stop' as const,
      stopSequence: null,
    },
  ],
  usage,
};
const settings = {
  tool_choice: { type: 'web_search' },
  text: { format: { type: 'x' }, verbosity: 'low' },
  reasoning: { effort: 'ultra' },
  max_output_tokens: 16,
  temperature: 2,
  top_p: 0.1,
  parallel_tool_calls: false,
  include: ['message.output_text.logprobs'],
  background: true,
};

test('a compaction is the question for a summary, which no tool answers', async (t) => {
  const request = compactCodec.decodeRequest({ model: 'm', input: 'hi', tools, ...settings }, false, sealer);
  t.match(request, {
    compaction: 'object',
    stream: false,
    hostedTools: [],
    toolChoice: { mode: 'none' },
    format: null,
    verbosity: null,
    reasoning: null,
    maxTokens: null,
    temperature: null,
    topP: null,
    parallelCalls: null,
    logprobs: null,
  });
  t.equal(request.tools.length, 1, 'calls in the conversation need their tools');
  t.equal(request.turns.length, 2);
  t.match(request.turns[1], { role: 'user', parts: [{ text: /summary/ }] });
  t.equal(compactCodec.decodeRequest({ model: 'm', input: 'hi' }, false, sealer).toolChoice, null);
  t.match(
    refusalOf(() => compactCodec.decodeRequest({ model: 'm', input: null }, false, sealer)),
    { kind: 'missing_parameter', param: 'input' },
  );
});

test('an input that ends with a trigger asks for one as well', async (t) => {
  const input = [{ role: 'user', content: 'hi' }, { type: 'compaction_trigger' }];
  const request = decode({ input, tools, max_output_tokens: 16 }, true);
  t.match(request, { compaction: 'item', stream: true, toolChoice: { mode: 'none' }, maxTokens: null });
  t.equal(request.turns.length, 2);
  t.match(encode(request), { tool_choice: 'none' }, 'an upstream of the protocol itself can be asked too');
});

test('what the client carries is read again in place of the conversation', async (t) => {
  const text = responsesCodec.encodeAnswer(answer, { ...context, compaction: 'object' });
  const compacted = JSON.parse(text) as { output: { encrypted_content: string }[] };
  t.match(compacted, {
    id: 'resp_1',
    object: 'response.compaction',
    created_at: 1,
    output: [{ id: 'cmp_1', type: 'compaction' }],
    usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 },
  });
  t.notMatch(text, 'Oslo');
  const { turns } = decode({ input: [...compacted.output, { role: 'user', content: 'Go on.' }] });
  t.same(turns, [
    {
      role: 'user',
      parts: [{ kind: 'text', text: 'Summary of the conversation so far:\n\nWe were in Oslo.' }],
    },
    { role: 'user', parts: [{ kind: 'text', text: 'Go on.' }] },
  ]);
});

test('a compaction that is not ours is left out', async (t) => {
  const other = createSealer('another secret').seal('{"kind":"compaction","summary":"x"}');
  for (const encrypted_content of [
    'gAAAA',
    other,
    sealer.seal('{"summary":"x"}'),
    sealer.seal('x'),
    undefined,
  ]) {
    const { turns, leftOut } = decode({
      input: [
        { type: 'compaction', encrypted_content },
        { role: 'user', content: 'hi' },
      ],
    });
    t.strictSame(leftOut, ['compaction']);
    t.strictSame(turns, [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }]);
  }
});

test('as an item it is the whole output of a response', async (t) => {
  const text = responsesCodec.encodeAnswer(answer, { ...context, compaction: 'item' });
  t.match(JSON.parse(text), {
    object: 'response',
    status: 'completed',
    output: [{ id: 'cmp_1', type: 'compaction' }],
  });
});

test('a model that writes no summary, or not all of it, is an error', async (t) => {
  const [choice] = answer.choices;
  const cut = (finish: 'length' | 'filtered') => ({
    ...answer,
    choices: choice ? [{ ...choice, finish }] : [],
  });
  const answers = [
    [{ ...answer, choices: [] }, 'no summary'],
    [cut('length'), 'was cut'],
    [cut('filtered'), 'was cut'],
  ] as const;
  for (const compaction of ['object', 'item'] as const)
    for (const [given, message] of answers)
      t.match(
        refusalOf(() => responsesCodec.encodeAnswer(given, { ...context, compaction })),
        { kind: 'upstream_error', message },
      );
});

const outputFor = (input: unknown) => {
  const { echo } = compactCodec.decodeRequest({ model: 'm', input } as never, false, sealer);
  const text = compactCodec.encodeAnswer(answer, { ...context, echo, compaction: 'object' });
  return (JSON.parse(text) as { output: { content: unknown }[] }).output;
};

test('the last messages of the user come before the summary, word for word', async (t) => {
  const content = [
    { type: 'input_text', text: 'b' },
    { type: 'input_image', image_url: 'https://a/b.png' },
  ];
  const output = outputFor([
    { role: 'developer', content: 'x' },
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'x' },
    { type: 'message', role: 'user', content },
  ]);
  const item = { type: 'message', status: 'completed', role: 'user' };
  t.same(output.slice(0, -1), [
    { id: 'msg_1', ...item, content: [{ type: 'input_text', text: 'a' }] },
    { id: 'msg_1_1', ...item, content },
  ]);
  t.match(output.at(-1), { id: 'cmp_1', type: 'compaction' });
  t.match(decode({ input: output }).turns, [
    { role: 'user', parts: [{ text: 'a' }] },
    { role: 'user', parts: [{ text: 'b' }, { kind: 'image' }] },
    { role: 'user', parts: [{ text: /Summary/ }] },
  ]);
  t.match(outputFor('hi')[0], { content: [{ type: 'input_text', text: 'hi' }] });
});

test('only so many of them are kept', async (t) => {
  const message = (letter: string) => ({ role: 'user', content: letter.repeat(9000) });
  const output = outputFor(['a', 'b', 'c'].map(message));
  t.equal(output.length, 3);
  t.match(output[0]?.content, [{ text: /^b/ }]);
  t.equal(outputFor([message('a'), { role: 'user', content: 'x'.repeat(20_000) }]).length, 1);
});

test('tools of a compaction may have any shape', async (t) => {
  const odd = [{ type: { toString: 1, valueOf: 1 } }, { type: 'function', name: '' }, null, 5];
  t.same(compactCodec.decodeRequest({ model: 'm', input: 'hi', tools: odd }, false, sealer).tools, []);
});

test('what a tool of the upstream left in the conversation is no matter of its tools', async (t) => {
  const input = [{ role: 'user', content: 'hi' }, { type: 'web_search_call' }];
  const { hostedTools, leftOut } = compactCodec.decodeRequest({ model: 'm', input, tools }, false, sealer);
  t.strictSame(hostedTools, []);
  t.strictSame(leftOut, ['web_search_call']);
});
