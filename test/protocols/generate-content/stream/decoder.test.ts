import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { generateContentCodec } from '../../../../src/protocols/generate-content/index.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { plainSource } from '../../../conversation/plain.js';
import { decodeBlocks, token } from '../samples.js';

const parts = (...given: JsonObject[]) => ({
  candidates: [{ content: { role: 'model', parts: given }, index: 0 }],
});
const stop = (...given: JsonObject[]) => ({
  candidates: [{ content: { role: 'model', parts: given }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
});
const usage = { kind: 'usage', usage: { input: 1, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 } };
const start = { kind: 'start', usage: null };
const finish = (reason: string, choice = 0) => ({ kind: 'finish', choice, reason, stopSequence: null });
const call = (call: number, id: string, name: string, text: string) => [
  { kind: 'callStart', choice: 0, call, id, name, custom: false },
  { kind: 'callArguments', choice: 0, call, text },
  { kind: 'callEnd', choice: 0, call },
];
const kindsOf = (...blocks: (JsonObject | string)[]) =>
  decodeBlocks(...blocks).map((event) => (event.kind === 'error' ? event.error.kind : event.kind));

test('text, in the order in which it comes', async (t) => {
  t.same(
    decodeBlocks(
      { ...parts({ text: 'a' }), usageMetadata: { promptTokenCount: 1, totalTokenCount: 1 } },
      parts({ text: 'b' }, { text: '' }),
      stop({ text: 'c' }),
    ),
    [
      { kind: 'start', usage: { input: 1, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 } },
      { kind: 'text', choice: 0, text: 'a' },
      { kind: 'text', choice: 0, text: 'b' },
      { kind: 'text', choice: 0, text: 'c' },
      finish('stop'),
      usage,
      { kind: 'end' },
    ],
  );
});

test('calls come whole, and decide the reason', async (t) => {
  t.same(
    decodeBlocks(
      parts({ functionCall: { id: 'x', name: 'f', args: { a: 1 } } }, { functionCall: { name: 'g' } }),
      stop({ functionCall: { name: 'f', args: null } }),
    ),
    [
      start,
      ...call(0, 'x', 'f', '{"a":1}'),
      ...call(1, '', 'g', '{}'),
      ...call(2, '', 'f', '{}'),
      finish('toolCalls'),
      usage,
      { kind: 'end' },
    ],
  );
});

test('a signature comes before the part that it stands on', async (t) => {
  const signature = { kind: 'signature', choice: 0, signature: token('s') };
  t.same(
    decodeBlocks(
      parts({ text: 'hm', thought: true }),
      parts({ functionCall: { id: 'x', name: 'f', args: {} }, thoughtSignature: 's' }),
      parts({ text: 'a', thoughtSignature: 's' }),
      stop({ text: '', thoughtSignature: 's' }),
    ).slice(1, -3),
    [
      { kind: 'reasoning', choice: 0, text: 'hm' },
      { ...signature, signature: token('s').replace('gw1.s.', 'gw1.c.') },
      ...call(0, 'x', 'f', '{}'),
      signature,
      { kind: 'text', choice: 0, text: 'a' },
      signature,
    ],
  );
  t.same(decodeBlocks(parts({ text: 'hm', thought: true, thoughtSignature: 's' })).slice(1, -1), [
    { kind: 'reasoning', choice: 0, text: 'hm' },
    signature,
  ]);
});

test('a signature within a text comes where the text ends, so that clients get one text', async (t) => {
  const signature = { kind: 'signature', choice: 0, signature: token('s') };
  const texts = ['a', 'b', 'c'].map((text) => ({ kind: 'text', choice: 0, text }));
  const early = parts({ text: 'a' }, { text: 'b', thoughtSignature: 's' });
  t.same(decodeBlocks(early, stop({ text: 'c' })).slice(1, -3), [...texts, signature]);
  t.same(decodeBlocks(early, stop({ text: 'c', thoughtSignature: 's' })).slice(1, -3), [...texts, signature]);
  t.same(
    decodeBlocks(parts({ text: 'a' }, { text: '', thoughtSignature: 's' }), parts({ text: 'b' })).slice(
      1,
      -1,
    ),
    [...texts.slice(0, 2)],
  );
  const call = { functionCall: { id: 'x', name: 'f', args: {} } };
  t.same(kindsOf(early, stop(call)), [
    ...['start', 'text', 'text', 'signature', 'callStart', 'callArguments', 'callEnd'],
    ...['finish', 'usage', 'end'],
  ]);
  t.same(kindsOf(early, parts({ text: 'hm', thought: true }), stop({ text: 'c', thoughtSignature: 's' })), [
    ...['start', 'text', 'text', 'signature', 'reasoning', 'signature', 'text', 'finish', 'usage', 'end'],
  ]);
});

test('several candidates, each with its reason', async (t) => {
  const both = (finishReason: string | undefined, ...texts: string[]) => ({
    candidates: texts.map((text, index) => ({ index, finishReason, content: { parts: [{ text }] } })),
  });
  t.same(decodeBlocks(both(undefined, 'a', 'b'), both('MAX_TOKENS', 'c', 'd')), [
    start,
    { kind: 'text', choice: 0, text: 'a' },
    { kind: 'text', choice: 1, text: 'b' },
    { kind: 'text', choice: 0, text: 'c' },
    { kind: 'text', choice: 1, text: 'd' },
    finish('length', 0),
    finish('length', 1),
    { kind: 'end' },
  ]);
});

test('log probabilities go to the text that they are of', async (t) => {
  const logprobsResult = { chosenCandidates: [{ token: 'a', logProbability: -1 }] };
  t.same(decodeBlocks({ candidates: [{ content: { parts: [{ text: 'a' }] }, logprobsResult }] })[1], {
    kind: 'text',
    choice: 0,
    text: 'a',
    logprobs: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }],
  });
});

test('a blocked prompt ends the stream as filtered', async (t) => {
  t.same(
    decodeBlocks({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 1 } }),
    [
      { kind: 'start', usage: { input: 1, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 } },
      finish('filtered'),
      { kind: 'usage', usage: { input: 1, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 } },
      { kind: 'end' },
    ],
  );
});

test('the reason of an empty answer is told at once', async (t) => {
  const decoder = generateContentCodec.createDecoder({ ...plainSource, model: 'g' });
  const out: StreamEvent[] = [];
  decoder.decode(null, '{"candidates":[{"finishReason":"SAFETY","index":0}]}', out);
  t.same(out, [start, finish('filtered')]);
  decoder.decode(null, JSON.stringify(stop({ text: 'too late' })), out);
  decoder.finish(out);
  t.same(out, [start, finish('filtered'), usage, { kind: 'end' }]);
});

test('a stream without its reason was cut', async (t) => {
  t.same(kindsOf(), ['upstream_error']);
  t.same(kindsOf(parts({ text: 'a' })), ['start', 'text', 'upstream_error']);
  t.same(
    kindsOf({ candidates: [{ index: 0, finishReason: 'STOP' }, { index: 1 }] }),
    ['start', 'finish', 'upstream_error'],
    'of one of its candidates',
  );
  t.same(
    kindsOf({ candidates: [{ finishReason: 'FINISH_REASON_UNSPECIFIED' }] }),
    ['start', 'upstream_error'],
    'the value for no reason is none',
  );
});

test('errors end it, and nothing comes after them', async (t) => {
  t.same(kindsOf(parts({ text: 'a' }), { error: { code: 503, message: 'm' } }, stop()), [
    'start',
    'text',
    'overloaded',
  ]);
  t.same(kindsOf({ error: { code: 429 } }), ['rate_limit_exceeded']);
  t.same(kindsOf('not json'), ['unsupported_stream_event']);
  t.same(kindsOf('[1]'), ['unsupported_stream_event']);
  t.same(kindsOf({ choices: [] }), ['unsupported_stream_event']);
  t.same(kindsOf({ type: 'message_start' }), ['unsupported_stream_event']);
});

test('what does not matter is passed over', async (t) => {
  t.same(
    kindsOf(
      { modelVersion: 'g' },
      parts({ inlineData: { mimeType: 'image/png', data: 'AA==' } }, { executableCode: {} }),
      { candidates: [null, 5, { content: { parts: [null, { text: 5 }, { functionCall: { name: 5 } }] } }] },
      { candidates: 5, usageMetadata: [] },
      stop(),
      '[DONE]',
    ),
    ['start', 'finish', 'usage', 'end'],
  );
});

test('a stream has no more candidates than an answer may have', async (t) => {
  const numbered = (index: number) => ({ candidates: [{ content: { parts: [{ text: 'a' }] }, index }] });
  t.same(kindsOf(numbered(127)).slice(0, 2), ['start', 'text']);
  t.same(kindsOf(numbered(128)), ['start', 'unsupported_stream_event']);
  const many = { candidates: Array.from({ length: 129 }, () => ({ content: { parts: [{ text: 'a' }] } })) };
  t.equal(kindsOf(many).at(-1), 'unsupported_stream_event');
});

test('log probabilities of chunks without a text go with the next text, or stand at the end', async (t) => {
  const chunk = (token: string, ...given: JsonObject[]) => ({
    candidates: [
      {
        content: { parts: given },
        logprobsResult: { chosenCandidates: [{ token, logProbability: -1 }] },
        index: 0,
      },
    ],
  });
  const of = (...tokens: string[]) =>
    tokens.map((token) => ({ token, logprob: -1, bytes: null, top_logprobs: [] }));
  const textsOf = (...blocks: JsonObject[]) => decodeBlocks(...blocks).filter(({ kind }) => kind === 'text');
  t.strictSame(textsOf(chunk('a'), chunk('b', { text: 'b' }), chunk('c', { text: '' }), stop()), [
    { kind: 'text', choice: 0, text: 'b', logprobs: of('a', 'b') },
    { kind: 'text', choice: 0, text: '', logprobs: of('c') },
  ]);
  t.strictSame(textsOf(chunk('a', { functionCall: { name: 'f' } }), stop()), []);
  const called = [parts({ text: 'a' }), chunk('b', { functionCall: { name: 'f' } }), stop()];
  t.strictSame(textsOf(...called), [{ kind: 'text', choice: 0, text: 'a' }]);
  const both = chunk('b', { text: 't', thought: true }, { text: 'b' });
  t.strictSame(textsOf(both, stop()), [{ kind: 'text', choice: 0, text: 'b', logprobs: of('b') }]);
  const thought = chunk('t', { text: 't', thought: true });
  t.strictSame(textsOf(thought, chunk('b', { text: 'b' }), stop()), [
    { kind: 'text', choice: 0, text: 'b', logprobs: of('b') },
  ]);
});
