import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { chatCodec } from '../../../../src/protocols/chat/index.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { plainSource } from '../../../conversation/plain.js';
import { cases, fc } from '../../../support/seed.js';
import { brief, chunk, decodeStream } from '../samples.js';

const fragment = (index: number | undefined, more: JsonObject, id?: string) =>
  chunk({ tool_calls: [{ index, id, type: 'function', function: more }] });
const stop = chunk({}, { finish_reason: 'stop' });
const usage = { prompt_tokens: 1, completion_tokens: 2 };
const done = '[DONE]';
const steps = (...data: (string | JsonObject)[]) => brief(decodeStream(...data));

test('texts, refusals and reasoning', async (t) => {
  t.strictSame(
    steps(
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'h', content: null }),
      chunk({ reasoning: 'm' }),
      chunk({ reasoning: 'n', reasoning_content: 'n' }),
      chunk({ content: 'a' }),
      chunk({ content: 'b', refusal: 'c' }, { finish_reason: 'length' }),
      { choices: [], usage },
      done,
      chunk({ content: 'late' }),
    ),
    [
      'start',
      'reasoning h',
      'reasoning m',
      'reasoning n',
      'signature',
      'text a',
      'text b',
      'refusal c',
      'finish length',
      'usage 1 2',
      'end',
    ],
  );
});

test('log probabilities and citations', async (t) => {
  const token = { token: 'a', logprob: -1, bytes: null, top_logprobs: [] };
  const cited = {
    type: 'url_citation',
    url_citation: { start_index: 1, end_index: 2, url: 'u', title: 't' },
  };
  t.match(
    decodeStream(
      chunk({ content: '' }, { logprobs: { content: [token] } }),
      chunk({ annotations: [cited] }),
      stop,
    ),
    [
      { kind: 'start' },
      { kind: 'text', text: '', logprobs: [token] },
      { kind: 'citation', citation: { start: 1, end: 2, url: 'u', title: 't' } },
      { kind: 'finish' },
      { kind: 'end' },
    ],
  );
});

test('usage may come alone, with the finish, or in every chunk', async (t) => {
  const ends = ['finish stop', 'usage 1 2', 'end'];
  t.strictSame(steps(stop, { choices: [], usage }, done).slice(1), ends);
  t.strictSame(steps({ ...stop, usage }, done).slice(1), ends);
  t.strictSame(steps({ ...stop, usage: null }, { choices: null, usage }, done).slice(1), ends);
  t.strictSame(steps({ ...chunk({ content: 'a' }), usage }, { ...stop, usage }).slice(1), [
    'text a',
    'usage 1 2',
    ...ends,
  ]);
});

test('several choices finish one by one', async (t) => {
  const of = (index: number, delta: JsonObject, reason: string | null = null) => ({
    choices: [{ index, delta, finish_reason: reason }],
  });
  const data = [of(0, { content: 'a' }), of(1, { content: 'b' }), of(0, {}, 'stop'), of(1, {}, 'length')];
  t.match(decodeStream(...data, of(0, { content: 'late' }), of(0, {}, 'stop'), done), [
    { kind: 'start' },
    { kind: 'text', choice: 0, text: 'a' },
    { kind: 'text', choice: 1, text: 'b' },
    { kind: 'finish', choice: 0, reason: 'stop' },
    { kind: 'finish', choice: 1, reason: 'length' },
    { kind: 'end' },
  ]);
  t.equal(steps(...data.slice(0, 3)).at(-1), 'error upstream_error', 'one of them is cut off');
});

test('what ends a stream, and what breaks it off', async (t) => {
  t.strictSame(steps(stop), ['start', 'finish stop', 'end'], 'the last marker may be missing');
  t.strictSame(steps(chunk({ content: 'a' }), done), ['start', 'text a', 'finish other', 'end']);
  t.strictSame(steps(chunk({ content: 'a' }, { finish_reason: '' })), [
    'start',
    'text a',
    'error upstream_error',
  ]);
  t.strictSame(steps(fragment(0, { name: 'f', arguments: '{' }, 'c')).at(-1), 'error upstream_error');
  t.strictSame(steps(), ['error upstream_error']);
  t.strictSame(steps(done), ['error upstream_error']);
  t.strictSame(steps({ choices: [], prompt_filter_results: [] }, ' ', stop, `${done} `, done), [
    'start',
    'finish stop',
    'end',
  ]);
});

test('events of a server’s own are passed over, first or in the middle', async (t) => {
  const own = { type: 'codex.rate_limits' };
  t.strictSame(
    steps(own, chunk({ content: 'a' }), own, stop, own, done),
    steps(chunk({ content: 'a' }), stop, done),
  );
});

test('errors of the upstream, and events of other protocols', async (t) => {
  const cases: [string | JsonObject, string][] = [
    [{ error: { message: 'x', code: 429 } }, 'rate_limit_exceeded'],
    [{ error: { message: 'x', type: 'rate_limit_error' } }, 'rate_limit_exceeded'],
    [{ error: { message: 'x' } }, 'upstream_error'],
    [{ error: 'x', choices: [] }, 'upstream_error'],
    ['not json', 'unsupported_stream_event'],
    ['[1]', 'unsupported_stream_event'],
    [{ type: 'message_start' }, 'unsupported_stream_event'],
    [{ candidates: [] }, 'unsupported_stream_event'],
    [{ choices: [{ index: 128, delta: {} }] }, 'unsupported_stream_event'],
    [{ choices: [{ index: 0.5, delta: {} }] }, 'unsupported_stream_event'],
  ];
  for (const [data, kind] of cases)
    t.equal(steps(chunk({ content: 'a' }), data, stop, done).at(-1), `error ${kind}`, JSON.stringify(data));
  const out: StreamEvent[] = [];
  chatCodec.createDecoder({ ...plainSource, model: 'up' }).decode('error', '{"message":"x","code":429}', out);
  t.strictSame(brief(out), ['error rate_limit_exceeded']);
});

test('no JSON makes the decoder throw, and one step ends every stream', async (t) => {
  const odd = fc.oneof(fc.jsonValue(), fc.string());
  const call = fc.record(
    {
      index: odd,
      id: odd,
      type: odd,
      function: fc.oneof(odd, fc.record({ name: odd, arguments: odd })),
      custom: odd,
    },
    { requiredKeys: [] },
  );
  const delta = fc.record(
    {
      content: odd,
      refusal: odd,
      reasoning: odd,
      tool_calls: fc.oneof(odd, fc.array(call)),
      function_call: odd,
      annotations: odd,
    },
    { requiredKeys: [] },
  );
  const choice = fc.record(
    { index: fc.oneof(odd, fc.nat(2)), delta: fc.oneof(odd, delta), finish_reason: odd, logprobs: odd },
    { requiredKeys: [] },
  );
  const piece = fc.record(
    { choices: fc.oneof(odd, fc.array(choice)), usage: odd, object: odd, type: odd },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(odd, piece), { maxLength: 8 }), (pieces) => {
      const events = decodeStream(...pieces.map((each) => JSON.stringify(each)));
      const ends = events.filter(({ kind }) => kind === 'end' || kind === 'error');
      return ends.length === 1 && ends[0] === events.at(-1);
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});
