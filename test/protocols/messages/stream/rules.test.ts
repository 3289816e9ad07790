import { test } from 'tap';
import { GatewayError } from '../../../../src/errors.js';
import { countTokens, messages } from '../../../../src/protocols/messages/index.js';
import { judgeEnd, judgeStart } from '../../../../src/protocols/messages/stream/rules.js';
import { decode, sse } from '../samples.js';

const run = (text: string) => Buffer.from(text);
const usageAtStart = { input: 30, output: 1, cached: 8, cacheWritten: 2, reasoning: 0 };
const facts = { usageAtStart, ended: false };
const startUsage = {
  input_tokens: 20,
  cache_creation_input_tokens: 2,
  cache_read_input_tokens: 8,
  cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 0 },
  output_tokens: 1,
  service_tier: 'standard',
};
const start = sse({
  type: 'message_start',
  message: { id: 'msg_1', content: [], usage: startUsage },
} as never);
const ping = sse({ type: 'ping' });
const stop = sse({ type: 'message_stop' });
const delta = (usage: object) =>
  sse({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage } as never);

test('pings and comments are silence, an event of an answer is meaningful', async (t) => {
  t.equal(judgeStart(run(`: x\n\n${ping}`)), 'silence');
  t.equal(judgeStart(run(`${ping}${start}`)), 'meaningful');
  t.equal(judgeStart(run('data: {"type":"message_start","message":{}}\n\n')), 'meaningful');
  t.equal(judgeStart(run(sse({ type: 'content_block_start' }))), 'meaningful');
});

test('events of a server’s own say nothing', async (t) => {
  const own = sse({ type: 'codex.rate_limits' });
  t.equal(judgeStart(run(own)), 'silence');
  t.equal(judgeStart(run(own + sse({ type: 'message_start' }))), 'meaningful');
  t.match(judgeStart(run(own + sse({ type: 'response.created' }))), { kind: 'unsupported_stream_event' });
});

test('a first event that is an error, or of another protocol, is an error', async (t) => {
  const error = (type: string, message = 'x') => sse({ type: 'error', error: { type, message } } as never);
  const kinds: [string, string][] = [
    [error('overloaded_error'), 'overloaded'],
    [error('rate_limit_error'), 'rate_limit_exceeded'],
    [error('invalid_request_error'), 'invalid_request'],
    [error('request_too_large'), 'request_too_large'],
    [error('not_found_error'), 'not_found'],
    [error('conflict_error'), 'conflict'],
    [error('timeout_error'), 'upstream_timeout'],
    [error('permission_error', 'This was flagged by our safety system.'), 'permission_denied'],
    [error('too_many_requests'), 'rate_limit_exceeded'],
    [error('api_error'), 'upstream_error'],
    [error('toString'), 'upstream_error'],
    ['data: {"error":"x"}\n\n', 'unsupported_stream_event'],
    ['data: {"error":{}}\n\n', 'upstream_error'],
    ['event: error\ndata: {}\n\n', 'upstream_error'],
    ['data: {"choices":[]}\n\n', 'unsupported_stream_event'],
    ['data: {"candidates":[]}\n\n', 'unsupported_stream_event'],
    [sse({ type: 'response.created' }), 'unsupported_stream_event'],
    ['data: [DONE]\n\n', 'unsupported_stream_event'],
    ['data: {}\n\n', 'unsupported_stream_event'],
  ];
  for (const [text, kind] of kinds) {
    const verdict = judgeStart(run(text));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind, text);
  }
  t.match(judgeStart(run(error('overloaded_error'))), { message: 'x' });
  for (const [type, vendorAccountStatus] of [
    ['authentication_error', 401],
    ['billing_error', 402],
    ['permission_error', 403],
  ] as const) {
    const told = judgeStart(run(error(type)));
    t.match(
      told,
      { kind: 'upstream_error', vendorAccountStatus },
      `${type}: of our account, not the client's`,
    );
  }
  t.match(judgeStart(run('data: {"choices":[]}\n\n')), { message: /'choices'/ }, 'it says what it saw');
  t.match(judgeStart(run(sse({ type: 'response.created' }))), { message: /response\.created/ });
});

test('the usage of the first event counts what the cache had a part in', async (t) => {
  t.same(messages.usageAtStart?.(run(ping + start)), usageAtStart);
  t.equal(messages.usageAtStart?.(run(ping)), null);
  t.equal(messages.usageAtStart?.(run('data: {"usage":{"a":1},"x":"\\"usage\\":{}"}\n\n')), null);
});

test('the end of a stream tells whether it was complete', async (t) => {
  const last = delta({ output_tokens: 9 });
  t.equal(judgeEnd(run(last + stop), facts).state, 'complete');
  t.equal(judgeEnd(run(last + stop + ping), facts).state, 'complete');
  t.equal(judgeEnd(run(`${last}data: {"type":"message_stop"}\n\n`), facts).state, 'complete');
  t.equal(judgeEnd(run((last + stop).replaceAll('\n', '\r\n')), facts).state, 'complete');
  t.equal(judgeEnd(run(last), facts).state, 'incomplete');
  t.equal(judgeEnd(run(''), facts).state, 'incomplete');
  const error = sse({ type: 'error', error: { type: 'api_error', message: 'x' } } as never);
  t.equal(judgeEnd(run(last + error), facts).state, 'failed');
  t.equal(judgeEnd(run('cut":1}\n\ndata: {"error":{}}\n\n'), facts).state, 'failed');
  const said = sse({ type: 'content_block_delta', delta: { text: 'event: message_stop' } } as never);
  t.equal(judgeEnd(run(said), facts).state, 'incomplete', 'in a text it is no end');
});

test('the last totals replace those of the start where they have any', async (t) => {
  const usage = (last: object) => judgeEnd(run(delta(last) + stop), facts).usage;
  t.same(usage({ output_tokens: 9 }), { ...usageAtStart, output: 9 });
  t.same(usage({ input_tokens: 0, output_tokens: 9 }), { ...usageAtStart, output: 9 });
  t.same(
    usage({
      input_tokens: 40,
      cache_read_input_tokens: null,
      cache_creation_input_tokens: 3,
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 4 },
    }),
    { input: 51, output: 9, cached: 8, cacheWritten: 3, reasoning: 4 },
  );
  t.same(judgeEnd(run('broken'), facts).usage, usageAtStart);
  t.equal(judgeEnd(run('broken'), { ...facts, usageAtStart: null }).usage, null);
});

test('the totals of several last events are each those of the last one that has them', async (t) => {
  const usage = (...last: readonly object[]) =>
    judgeEnd(run(last.map((each) => delta(each)).join('') + stop), facts).usage;
  t.same(
    usage({ input_tokens: 40, cache_read_input_tokens: 20, output_tokens: 5 }, { output_tokens: 9 }),
    usage({ input_tokens: 40, cache_read_input_tokens: 20, output_tokens: 9 }),
  );
  const iterations = [
    { type: 'compaction', input_tokens: 1800, output_tokens: 350 },
    { type: 'message', input_tokens: 40, output_tokens: 5 },
  ];
  t.match(usage({ input_tokens: 40, output_tokens: 5, iterations }, { output_tokens: 9 }), {
    input: 40 + 10 + 1800,
    output: 359,
  });
});

test('the usage of a whole answer is not taken from the input of its tools', async (t) => {
  const input = { usage: { input_tokens: 0, output_tokens: 0 } };
  const content = [{ type: 'tool_use', id: 'x', name: 'f', input }];
  const body = { usage: { input_tokens: 3, output_tokens: 4 }, type: 'message', content };
  t.same(messages.usageOf(run(JSON.stringify(body))), {
    input: 3,
    output: 4,
    cached: 0,
    cacheWritten: 0,
    reasoning: 0,
  });
  t.equal(messages.usageOf(run('{"input_tokens":1}')), null);
});

test('a question for tokens is answered here where the upstream knows none', async (t) => {
  const answer = countTokens.translation?.answerHere?.(decode({ max_tokens: undefined }));
  t.match(JSON.parse(answer ?? ''), { input_tokens: Number });
  t.equal(countTokens.usageOf(run('{"input_tokens":5}')), null, 'it consumes nothing');
  t.equal(countTokens.upstreamPath('m', false), '/messages/count_tokens');
  t.equal(messages.upstreamPath('m', true), '/messages');
});

test('objects of that name within each other are looked through once, and not for each of them', async (t) => {
  const deep = 200_000;
  const input = `${'{"usage":'.repeat(deep)}0${'}'.repeat(deep)}`;
  const content = `"content":[{"type":"tool_use","input":${input}}]`;
  t.equal(messages.usageOf(Buffer.from(`{"type":"message",${content}}`)), null);
  t.equal(messages.usageAtStart?.(run(`data: {"type":"message_start","message":{${content}}}\n\n`)), null);
});
