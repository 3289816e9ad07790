import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { GatewayError } from '../../../../src/errors.js';
import { lastUsage } from '../../../../src/protocols/chat/answer/usage.js';
import { ChatDecoder } from '../../../../src/protocols/chat/stream/decoder.js';
import { hideUsage, judgeEnd, judgeStart } from '../../../../src/protocols/chat/stream/rules.js';
import { parseEvent } from '../../../../src/wire/sse.js';
import { plainSource } from '../../../conversation/plain.js';
import { chatEvent, doneEvent, usageEvent } from '../../../support/upstream.js';

const run = (text: string) => Buffer.from(text);

test('comments are silence and a chunk is meaningful', async (t) => {
  t.equal(judgeStart(run(': ping\n\n: ping\n\n')), 'silence');
  t.equal(judgeStart(run(`: ping\n\n${chatEvent({ content: 'a' })}`)), 'meaningful');
  t.equal(judgeStart(run('data:\n\ndata: \n\n')), 'silence', 'empty data say nothing');
  t.equal(judgeStart(run('data: {"object":"chat.completion.chunk"}\n\n')), 'meaningful');
});

test('events of a server’s own say nothing', async (t) => {
  for (const own of ['data: {"type":"codex.rate_limits"}\n\n', 'event: x\ndata: {"a":1}\n\n']) {
    t.equal(judgeStart(run(own)), 'silence', own);
    t.equal(judgeStart(run(`${own}data: {"choices":[]}\n\n`)), 'meaningful');
    t.match(judgeStart(run(`${own}data: {"candidates":[]}\n\n`)), { kind: 'unsupported_stream_event' });
  }
});

test('a first event that is an error, or of another protocol, is an error', async (t) => {
  const kinds: [string, string][] = [
    ['data: {"error":{"message":"x","code":429}}\n\n', 'rate_limit_exceeded'],
    ['data: {"error":{"message":"x"}}\n\n', 'upstream_error'],
    ['event: message_start\ndata: {"type":"message_start"}\n\n', 'unsupported_stream_event'],
    ['data: {"candidates":[]}\n\n', 'unsupported_stream_event'],
    ['data: [1]\n\n', 'unsupported_stream_event'],
    ['data: not json\n\n', 'unsupported_stream_event'],
    ['data: {}\n\n', 'unsupported_stream_event'],
    ['data: {"object":"error","type":"NotFoundError"}\n\n', 'unsupported_stream_event'],
    ['data: {"type":"response.created"}\n\n', 'unsupported_stream_event'],
    ['data: {"type":"error","message":"x"}\n\n', 'upstream_error'],
  ];
  for (const [text, kind] of kinds) {
    const verdict = judgeStart(run(text));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind, text);
  }
});

test('a first event is the same whether the stream passes or is translated', async (t) => {
  const events = [
    doneEvent,
    'data:\n\n',
    'data: [1]\n\n',
    'data: {}\n\n',
    'data: {"choices":null}\n\n',
    'data: {"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n',
    'data: {"usage":null}\n\n',
    'data: {"object":"chat.completion.chunk","type":"chunk"}\n\n',
    'data: {"type":"message_start"}\n\n',
    'data: {"error":""}\n\n',
    'data: {"error":"broken"}\n\n',
    'data: {"error":{"code":429,"message":"slow"}}\n\n',
    'event: error\ndata: {"message":"broken"}\n\n',
    'event: error\ndata: {"type":"rate_limit_error","message":"slow"}\n\n',
    'event: ping\ndata: {"a":1}\n\n',
    'data: {"type":"codex.rate_limits"}\n\n',
    'data: {"type":"error","message":"broken"}\n\n',
  ];
  const verdictOf = (found: unknown): string => {
    if (!(found instanceof GatewayError)) return 'none';
    return `${found.kind} ${found.status} ${found.message}`;
  };
  for (const text of events) {
    const { event, data } = parseEvent(text);
    const decoded: StreamEvent[] = [];
    new ChatDecoder({ ...plainSource, model: 'up' }).decode(event, data as string, decoded);
    const failure = decoded.find(({ kind }) => kind === 'error');
    const error = failure?.kind === 'error' ? failure.error : null;
    t.equal(verdictOf(judgeStart(run(text))), verdictOf(error), text);
  }
});

test('the end of a stream tells whether it was complete', async (t) => {
  t.same(judgeEnd(run(chatEvent({}, 'stop') + usageEvent + doneEvent)), {
    state: 'complete',
    error: null,
    usage: { input: 3, output: 4, cached: 0, cacheWritten: 0, reasoning: 0 },
  });
  t.equal(judgeEnd(run(chatEvent({}, 'stop'))).state, 'complete');
  t.equal(judgeEnd(run(chatEvent({ content: 'data: [DON' }))).state, 'incomplete');
  t.equal(
    judgeEnd(run(`"cut":1}\n\n${chatEvent({}, 'length')}`)).state,
    'complete',
    'the tail may begin anywhere',
  );
  t.equal(judgeEnd(run('data: {"error":{"message":"x"}}\n\n')).state, 'failed');
  t.equal(judgeEnd(run('')).state, 'incomplete');
  t.equal(
    judgeEnd(run(`data: {"error":{"message":"x"}}\n\n${doneEvent}`)).state,
    'failed',
    'whatever follows it',
  );
  t.equal(
    judgeEnd(run(chatEvent({ content: 'data: [DONE]' }))).state,
    'incomplete',
    'in a text it is no end',
  );
  t.equal(judgeEnd(run(`ut of a long event","finish_reason":"stop"}]}\n\n`)).state, 'complete');
  t.equal(judgeEnd(run(`${chatEvent({}, 'stop')}${usageEvent}`.replaceAll('\n', '\r\n'))).state, 'complete');
});

test('an empty reason to finish is none', async (t) => {
  t.equal(judgeEnd(run(chatEvent({ content: 'a' }, ''))).state, 'incomplete');
  t.equal(judgeEnd(run('ut of a long event","finish_reason":""}]}\n\n')).state, 'incomplete');
  t.equal(judgeEnd(run('ut of a long event", "finish_reason": "stop"}]}\n\n')).state, 'complete');
  t.equal(judgeEnd(run('ut of a long event", "finish_reason": null}]}\n\n')).state, 'incomplete');
});

test('of several choices all have to end, but for the end mark', async (t) => {
  const of = (index: number, reason: string | null) =>
    `data: {"choices":[{"index":${index},"delta":{},"finish_reason":${JSON.stringify(reason)}}]}\n\n`;
  t.equal(judgeEnd(run(of(0, 'stop') + of(1, null))).state, 'incomplete');
  t.equal(judgeEnd(run(of(0, 'stop') + of(1, null).slice(0, -20))).state, 'incomplete', 'cut in an event');
  t.equal(judgeEnd(run(of(1, null) + of(0, 'stop'))).state, 'incomplete', 'the other one is under way');
  t.equal(judgeEnd(run(of(1, null) + of(0, null) + of(1, 'stop') + of(0, 'stop'))).state, 'complete');
  t.equal(judgeEnd(run(of(0, 'stop') + of(1, 'length') + usageEvent)).state, 'complete');
  t.equal(judgeEnd(run(of(0, 'stop') + of(1, null) + doneEvent)).state, 'complete');
  t.equal(judgeEnd(run(`${of(0, 'stop')}: ping\n\n`)).state, 'complete');
});

test('an error may be a text alone', async (t) => {
  const text = 'data: {"error":"boom"}\n\n';
  t.match(judgeStart(run(text)), { kind: 'upstream_error', message: 'boom' });
  t.equal(judgeEnd(run(text)).state, 'failed');
  t.equal(judgeStart(run('data: {"error":"","choices":[]}\n\n')), 'meaningful');
});

const hidden = (text: string): string => hideUsage(run(text)).toString();

test('the usage chunk is taken out from among others, and only that', async (t) => {
  const before = chatEvent({ content: 'the "usage":{"prompt_tokens":1} of words' });
  t.equal(hidden(before + usageEvent + doneEvent), before + doneEvent);
  t.equal(hidden(usageEvent.replaceAll('":', '": ')), '');
  const kept = [
    before + chatEvent({}, 'stop') + doneEvent,
    'data: {"choices":[],"prompt_filter_results":[{}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}\n\n',
  ];
  for (const text of kept) t.equal(hidden(text), text);
  const bytes = run(before);
  t.equal(hideUsage(bytes), bytes, 'nothing is copied');
});

test('a usage of null is taken out of the chunks themselves, wherever it stands', async (t) => {
  const delta = '"choices":[{"index":0,"delta":{"content":"a ,\\"usage\\":null}"}}]';
  const cases = [
    [`data: {"id":"1",${delta},"usage":null}\n\n`, `data: {"id":"1",${delta}}\n\n`],
    [
      `data: {${delta},"usage":null,"obfuscation":"a}\\""}\r\n\r\n`,
      `data: {${delta},"obfuscation":"a}\\""}\r\n\r\n`,
    ],
    [`data: {"usage": null, ${delta}}\n\n`, `data: {${delta}}\n\n`],
    [`data: {${delta} , "usage" : null }\n\n`, `data: {${delta}  }\n\n`],
  ] as const;
  for (const [told, left] of cases) t.equal(hidden(told), left);
  const all = (index: 0 | 1) => cases.map((each) => each[index]).join('');
  t.equal(hidden(all(0) + usageEvent + doneEvent), all(1) + doneEvent, 'of many in one run');
  const kept = [
    `data: {"choices":[{"index":0,"delta":{"step":{"id":1,"usage":null}}}]}\n\n`,
    `data: {${delta},"usage":nul}\n\n`,
    `data: {${delta},"usage":null`,
    'data: {"usage":null}\n\n',
    ': "usage":null\n\n',
  ];
  for (const text of kept) t.equal(hidden(text), text);
});

test('an event full of usage is looked through a few times, not once for each', async (t) => {
  const many = 100_000;
  const usages = {
    'nulls of its own': '"usage":null',
    'usage of its own': '"usage":{"prompt_tokens":1}',
  };
  for (const [name, usage] of Object.entries(usages)) {
    const members = new Array(many).fill(usage).join();
    const choices = '"choices":[{"index":0}]';
    t.ok(hidden(`data: {${choices},${members}}\n\n`).length > many * 10, name);
    t.ok(hidden(`data: {${choices},"x":{${members}}}\n\n`).length > many * 10, `${name} in another object`);
    t.ok(hidden(`data: {${choices},${members},"x":[\n\n`).length > many * 10, `${name}, cut off`);
  }
  const nested = `data: {"choices":[{"index":0}],"x":${'{"usage":'.repeat(many)}0${'}'.repeat(many)}}\n\n`;
  t.equal(hidden(nested), nested, 'usage within usage');
});

test('usage is the last whole object of that name', async (t) => {
  t.equal(lastUsage(run('{"usage":null}')), null);
  t.equal(lastUsage(run('{"usage":{"prompt_tokens":1')), null);
  t.equal(lastUsage(run('{}')), null);
  t.same(
    lastUsage(
      run(
        '{"usage" : {"prompt_tokens":9,"completion_tokens":8,"x":"}","prompt_tokens_details":{"cached_tokens":7},"completion_tokens_details":{"reasoning_tokens":6}}}',
      ),
    ),
    { input: 9, output: 8, cached: 7, cacheWritten: 0, reasoning: 6 },
  );
  t.equal(lastUsage(run('{"usage":{"prompt_tokens":-1,"completion_tokens":"x"}}')), null);
  t.same(lastUsage(run('{"usage":{"prompt_tokens":null,"completion_tokens": 5 }}')), {
    input: 0,
    output: 5,
    cached: 0,
    cacheWritten: 0,
    reasoning: 0,
  });
});
