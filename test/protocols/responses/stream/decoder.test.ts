import assert from 'node:assert/strict';
import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { untagSignature } from '../../../../src/conversation/signature.js';
import { responsesCodec } from '../../../../src/protocols/responses/index.js';
import { plainSource } from '../../../conversation/plain.js';
import { cases, fc } from '../../../support/seed.js';

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

/** What the events of an upstream are decoded to, with its end. */
function decodeAll(events: readonly Event[]): StreamEvent[] {
  const decoder = responsesCodec.createDecoder({ ...plainSource, model: 'up' });
  const out: StreamEvent[] = [];
  for (const event of events) decoder.decode(event.type, JSON.stringify(event), out);
  decoder.finish(out);
  return out;
}

const start = { kind: 'start', usage: null };
const end = { kind: 'end' };
const finish = (reason: string) => ({ kind: 'finish', choice: 0, reason, stopSequence: null });
const text = (words: string) => ({ kind: 'text', choice: 0, text: words });
const created = { type: 'response.created', response: { id: 'resp_1', output: [] } };
const completed = { type: 'response.completed', response: { status: 'completed', output: [] } };
const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
const delta = (words: unknown, index = 0) => ({
  type: 'response.output_text.delta',
  ...place,
  item_id: `msg_${index + 1}`,
  output_index: index,
  delta: words,
});
const message = (...content: object[]) => ({ id: 'msg_1', type: 'message', role: 'assistant', content });
const done = (item: object, index = 0) => ({ type: 'response.output_item.done', output_index: index, item });
const added = (item: object, index = 0) => ({
  type: 'response.output_item.added',
  output_index: index,
  item,
});
const called = (index: number, args: string) => ({
  id: `fc_${index}`,
  type: 'function_call',
  call_id: `call_${index}`,
  name: 'f',
  arguments: args,
});

test('text comes once, though its events repeat it', async (t) => {
  const whole = { type: 'output_text', text: 'hi', annotations: [] };
  const events = [
    created,
    { type: 'response.in_progress', response: {} },
    added(message()),
    { type: 'response.content_part.added', ...place, part: {} },
    delta('h'),
    delta('i'),
    { type: 'response.output_text.done', ...place, text: 'hi' },
    { type: 'response.content_part.done', ...place, part: whole },
    done(message(whole)),
    {
      type: 'response.completed',
      response: { output: [message(whole)], usage: { input_tokens: 3, output_tokens: 2 } },
    },
  ];
  const usage = { input: 3, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 };
  t.same(decodeAll(events), [start, text('h'), text('i'), { kind: 'usage', usage }, finish('stop'), end]);
});

test('text that comes only whole is taken where it first stands', async (t) => {
  const whole = { type: 'output_text', text: 'hi', annotations: [] };
  const expected = [start, text('hi'), finish('stop'), end];
  const last = { ...completed, response: { output: [message(whole)] } };
  const byText = { type: 'response.output_text.done', ...place, text: 'hi' };
  t.same(decodeAll([created, added(message()), byText, done(message(whole)), last]), expected);
  t.same(decodeAll([created, added(message()), done(message(whole)), last]), expected);
  t.same(decodeAll([created, added(message()), last]), expected);
  t.same(decodeAll([last]), expected);
});

test('calls come with their arguments in pieces, and end once', async (t) => {
  const input = (index: number, piece: string) => ({
    type: 'response.function_call_arguments.delta',
    output_index: index,
    item_id: `fc_${index}`,
    delta: piece,
  });
  const step = (kind: string, call: number, more: object) => ({ kind, choice: 0, call, ...more });
  const events = [
    created,
    added(called(0, '')),
    added(called(1, ''), 1),
    input(0, '{"a"'),
    input(1, '{}'),
    input(0, ':1}'),
    { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"a":1}' },
    done(called(0, '{"a":1}')),
    done(called(1, '{}'), 1),
    completed,
  ];
  t.same(decodeAll(events), [
    start,
    step('callStart', 0, { id: 'call_0', name: 'f', custom: false }),
    step('callStart', 1, { id: 'call_1', name: 'f', custom: false }),
    step('callArguments', 0, { text: '{"a"' }),
    step('callArguments', 1, { text: '{}' }),
    step('callArguments', 0, { text: ':1}' }),
    step('callEnd', 0, {}),
    step('callEnd', 1, {}),
    finish('toolCalls'),
    end,
  ]);
});

test('arguments that come only whole, in whichever event', async (t) => {
  const expected = [
    { kind: 'callStart', id: 'call_0' },
    { kind: 'callArguments', text: '{"a":1}' },
    { kind: 'callEnd' },
    finish('toolCalls'),
  ];
  const whole = called(0, '{"a":1}');
  const byEvent = { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"a":1}' };
  for (const events of [
    [added(called(0, '')), byEvent, completed],
    [added(called(0, '')), byEvent, done(whole), completed],
    [added(called(0, '')), done(whole), completed],
    [done(whole), completed],
    [{ ...completed, response: { output: [whole] } }],
  ])
    t.match(decodeAll([created, ...events]).slice(1, -1), expected);
});

test('a custom tool gets free text', async (t) => {
  const item = { id: 'ctc_1', type: 'custom_tool_call', call_id: 'c', name: 'g', input: '' };
  const events = [
    added(item),
    { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: 'ls' },
    { type: 'response.custom_tool_call_input.done', output_index: 0, input: 'ls' },
    done({ ...item, input: 'ls' }),
    completed,
  ];
  t.match(decodeAll(events), [
    start,
    { custom: true, name: 'g' },
    { text: 'ls' },
    { kind: 'callEnd' },
    {},
    {},
  ]);
});

test('reasoning: parts of a summary, then its encrypted form with the id of its item', async (t) => {
  const summary = (index: number, words: string) => ({
    type: 'response.reasoning_summary_text.delta',
    output_index: 0,
    summary_index: index,
    delta: words,
  });
  const item = { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'ab' }] };
  const events = [
    created,
    added({ ...item, summary: [] }),
    summary(0, 'a'),
    { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'in full' },
    { type: 'response.reasoning_summary_text.done', output_index: 0, summary_index: 0, text: 'a' },
    summary(1, 'b'),
    done({ ...item, encrypted_content: 'gAAA' }),
    completed,
  ];
  const [, first, second, signature] = decodeAll(events);
  t.match(
    [first, second],
    [
      { kind: 'reasoning', text: 'a' },
      { kind: 'reasoning', text: '\n\nb' },
    ],
  );
  t.equal(signature?.kind, 'signature');
  t.same(untagSignature(signature?.kind === 'signature' ? signature.signature : null), {
    protocol: 'responses',
    model: 'up',
    value: 'rs_1:gAAA',
    redacted: true,
  });
  const full = { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'f' };
  t.match(decodeAll([full, completed])[1], { kind: 'reasoning', text: 'f' });
  t.match(decodeAll([done(item), completed])[1], { kind: 'reasoning', text: 'ab' });
  const shut = decodeAll([added({ ...item, summary: [] }), done({ ...item, summary: [] }), completed]);
  t.same(shut, [start, finish('stop'), end], 'nothing of it is there');
});

test('refusals, sources and log probabilities', async (t) => {
  const citation = { type: 'url_citation', start_index: 0, end_index: 2, url: 'https://a', title: 'A' };
  const whole = { type: 'output_text', text: 'hi', annotations: [citation] };
  const token = { token: 'hi', logprob: -0.5, bytes: [104, 105], top_logprobs: [] };
  const events = [
    { ...delta('hi'), logprobs: [token, { token: 5 }, null] },
    { type: 'response.output_text.annotation.added', ...place, annotation: citation },
    { type: 'response.output_text.annotation.added', ...place, annotation: { type: 'file_citation' } },
    done(message(whole)),
    { type: 'response.refusal.delta', output_index: 1, content_index: 0, delta: 'no' },
    { type: 'response.refusal.done', output_index: 1, content_index: 0, refusal: 'no' },
    completed,
  ];
  const found = { kind: 'citation', choice: 0, citation: { start: 0, end: 2, url: 'https://a', title: 'A' } };
  t.same(decodeAll(events), [
    start,
    { ...text('hi'), logprobs: [token] },
    found,
    { kind: 'refusal', choice: 0, text: 'no' },
    finish('stop'),
    end,
  ]);
  t.match(decodeAll([delta('hi'), done(message(whole)), completed]).slice(1), [text('hi'), found]);
});

test('the reason why an answer is incomplete is its end', async (t) => {
  const incomplete = (reason: unknown) => ({
    type: 'response.incomplete',
    response: { incomplete_details: { reason } },
  });
  const reasonOf = (...events: Event[]) => decodeAll(events).find(({ kind }) => kind === 'finish');
  t.match(reasonOf(incomplete('max_output_tokens')), { reason: 'length' });
  t.match(reasonOf(incomplete('content_filter')), { reason: 'filtered' });
  for (const other of [5, 'max_messages', 'steered'])
    t.match(reasonOf(incomplete(other)), { reason: 'paused' }, 'not finished');
  t.match(reasonOf(completed), { reason: 'stop' });
  t.match(decodeAll([added(called(0, '')), incomplete('max_output_tokens')]).slice(1), [
    { kind: 'callStart' },
    { kind: 'callEnd' },
    { reason: 'length' },
  ]);
});

test('failures are errors, and nothing comes after them', async (t) => {
  const failed = (error: object) => ({ type: 'response.failed', response: { error } });
  const cases: [Event, string, string][] = [
    [failed({ code: 'rate_limit_exceeded', message: 'slow' }), 'rate_limit_exceeded', 'slow'],
    [failed({}), 'upstream_error', 'answered with an error'],
    [{ type: 'error', code: null, message: 'flat' }, 'upstream_error', 'flat'],
    [
      { type: 'error', error: { type: 'rate_limit_error', message: 'nested' } },
      'rate_limit_exceeded',
      'nested',
    ],
    [{ type: 'message_start' }, 'unsupported_stream_event', 'message_start'],
  ];
  for (const [event, kind, words] of cases) {
    const out = decodeAll([created, event, completed]);
    t.equal(out.length, 2);
    t.match(out[1], { kind: 'error', error: { kind, message: words } });
  }
});

test('events of a server’s own are passed over, first or in the middle', async (t) => {
  const own = { type: 'codex.rate_limits', rate_limits: { allowed: true } };
  t.strictSame(decodeAll([own, created, own, completed, own]), decodeAll([created, completed]));
});

test('an error without a type is that error', async (t) => {
  const decoder = responsesCodec.createDecoder({ ...plainSource, model: 'up' });
  const out: StreamEvent[] = [];
  decoder.decode(null, '{"error":{"message":"Quota","code":"rate_limit_exceeded"}}', out);
  t.match(out, [{ kind: 'error', error: { kind: 'rate_limit_exceeded', message: 'Quota' } }]);
});

test('an end without the last event is an error, also behind [DONE]', async (t) => {
  const decoder = responsesCodec.createDecoder({ ...plainSource, model: 'up' });
  const out: StreamEvent[] = [];
  decoder.decode(null, JSON.stringify(delta('hi')), out);
  decoder.decode(null, '[DONE]', out);
  t.match(out, [start, text('hi')]);
  decoder.finish(out);
  t.match(out[2], { kind: 'error', error: { kind: 'upstream_error' } });
});

test('events that say nothing here are passed over', async (t) => {
  const events = [
    { type: 'keepalive' },
    { type: 'response.web_search_call.searching', output_index: 0 },
    { type: 'response.some.news' },
    { type: 'ping' },
    added({ type: 'web_search_call', id: 'ws_1' }),
    done({ type: 'web_search_call', id: 'ws_1' }),
    completed,
  ];
  t.same(decodeAll(events), [start, finish('stop'), end]);
});

test('a call whose number another item ends with has ended, and nothing of either is lost', (t) => {
  const events = [
    added(called(1, '')),
    { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{}' },
    done(message({ type: 'output_text', text: 'Hi' })),
    completed,
  ];
  t.match(decodeAll(events), [
    start,
    { kind: 'callStart', call: 0, name: 'f' },
    { kind: 'callArguments', call: 0, text: '{}' },
    { kind: 'callEnd', call: 0 },
    text('Hi'),
    finish('toolCalls'),
    end,
  ]);
  t.end();
});

test('a call that was done without a name and begins with one later is one call', (t) => {
  const nameless = { id: 'fc_9', type: 'function_call', arguments: '{}' };
  t.match(decodeAll([done(nameless), added(called(1, '')), completed]), [
    start,
    { kind: 'callStart', call: 0, name: 'f' },
    { kind: 'callArguments', call: 0, text: '{}' },
    { kind: 'callEnd', call: 0 },
    finish('toolCalls'),
    end,
  ]);
  t.end();
});

test('whatever an upstream sends, there is one end or one error, and calls are well formed', async (t) => {
  const types = [
    'response.created',
    'response.output_item.added',
    'response.output_item.done',
    'response.output_text.delta',
    'response.output_text.done',
    'response.output_text.annotation.added',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.reasoning_summary_text.delta',
    'response.reasoning_text.done',
    'response.refusal.done',
    'response.completed',
    'response.failed',
    'error',
    'x',
  ];
  const scrap = fc.oneof(
    fc.constantFrom<unknown>(
      null,
      5,
      'text',
      [],
      {},
      [null],
      called(0, '{}'),
      called(1, ''),
      message({ type: 'x' }),
    ),
    fc.constantFrom<unknown>(
      message({ type: 'output_text', text: 5, annotations: [null], logprobs: [{}] }),
      { type: 'reasoning', summary: [null, { text: 5 }], encrypted_content: 5 },
      { type: 'function_call', id: 'fc_9', arguments: '{}' },
      { output: [null, called(2, '{}')], usage: { input_tokens: 'x' }, error: 5, incomplete_details: 7 },
    ),
  );
  const event = fc.record(
    {
      type: fc.constantFrom(...types),
      output_index: fc.constantFrom<unknown>(0, 1, 'x', null),
      content_index: fc.constantFrom<unknown>(0, 99, -1, 'x'),
      summary_index: scrap,
      item: scrap,
      response: scrap,
      delta: scrap,
      text: scrap,
      arguments: scrap,
      annotation: scrap,
      error: scrap,
      logprobs: scrap,
    },
    { requiredKeys: ['type'] },
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const out = decodeAll(events as Event[]);
      const open = new Set<number>();
      out.forEach((step, index) => {
        const isLast = step.kind === 'end' || step.kind === 'error';
        assert.equal(isLast, index === out.length - 1, JSON.stringify(out));
        if (step.kind === 'callStart') open.add(step.call);
        if (step.kind === 'callArguments') assert.ok(open.has(step.call));
        if (step.kind === 'callEnd') assert.ok(open.delete(step.call));
        if (step.kind === 'finish') assert.equal(open.size, 0);
      });
    }),
    { numRuns: cases(2000) },
  );
  t.pass();
});

test('what is kept of the items of a stream is bounded, by its number and its ids', async (t) => {
  const long = 'x'.repeat(100_000);
  for (const [name, made] of [
    ['numbers', (index: number) => delta('a', index)],
    ['ids', (index: number) => ({ type: 'response.output_text.delta', item_id: `${index}`, delta: 'a' })],
    ['long ids', (index: number) => added({ id: `${long}${index}`, type: 'message' }, index)],
    ['calls without a name', (index: number) => done({ ...called(index, long), name: '' }, index)],
  ] as const) {
    const decoder = responsesCodec.createDecoder({ ...plainSource, model: 'up' });
    let count = 0;
    for (let error = false; !error && count < 200_000; count++) {
      const out: StreamEvent[] = [];
      const event: Event = made(count);
      decoder.decode(event.type, JSON.stringify(event), out);
      error = out.some(({ kind }) => kind === 'error');
    }
    t.ok(count < 200_000, name);
    t.ok(count > 100, name);
  }
});
