import { test } from 'tap';
import { GatewayError } from '../../../../src/errors.js';
import { compactResponses, responses } from '../../../../src/protocols/responses/index.js';

const run = (text: string) => Buffer.from(text);
const event = (body: { type: string }, named = true) =>
  `${named ? `event: ${body.type}\n` : ''}data: ${JSON.stringify(body)}\n\n`;
const usage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 7, cache_write_tokens: 1 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 6 },
  total_tokens: 17,
};
const tokens = { input: 9, output: 8, cached: 7, cacheWritten: 1, reasoning: 6 };
const created = { type: 'response.created', response: { id: 'resp_1', tools: [], usage: null } };
const delta = { type: 'response.output_text.delta', delta: 'event: response.completed' };
const completed = { type: 'response.completed', response: { id: 'resp_1', usage, metadata: {} } };
const notEnded = { usageAtStart: null, ended: false };
const ended = { usageAtStart: null, ended: true };

test('comments and keep-alives are silence, events of the protocol are meaningful', async (t) => {
  t.equal(responses.judgeStart(run(': ping\n\nevent: keepalive\ndata: {"type":"keepalive"}\n\n')), 'silence');
  t.equal(responses.judgeStart(run('event: ping\ndata: {"type":"ping"}\n\n')), 'silence');
  for (const named of [true, false]) {
    t.equal(responses.judgeStart(run(`: ping\n\n${event(created, named)}`)), 'meaningful');
    t.equal(responses.judgeStart(run(event({ type: 'response.queued' }, named))), 'meaningful');
    t.equal(responses.judgeStart(run(event(delta, named))), 'meaningful');
  }
  t.equal(responses.judgeStart(run(event(created).replaceAll('\n', '\r\n'))), 'meaningful');
});

test('a first event that is an error, or of another protocol, is an error', async (t) => {
  const failed = (error: object) => event({ type: 'response.failed', response: { error } } as never);
  const kinds: [string, string, string][] = [
    [
      event({ type: 'error', code: 'rate_limit_exceeded', message: 'slow' } as never),
      'rate_limit_exceeded',
      'slow',
    ],
    [event({ type: 'error', message: 'broken' } as never, false), 'upstream_error', 'broken'],
    [event({ type: 'error', error: { message: 'nested' } } as never), 'upstream_error', 'nested'],
    [failed({ code: 'server_error', message: 'broken' }), 'upstream_error', 'broken'],
    [failed({ code: 'rate_limit_exceeded', message: 'slow' }), 'rate_limit_exceeded', 'slow'],
    ['data: {"error":{"message":"flat","code":429}}\n\n', 'rate_limit_exceeded', 'flat'],
    ['data: {"error":"text alone"}\n\n', 'upstream_error', 'text alone'],
    [event({ type: 'error', code: 'invalid_prompt', message: 'bad' } as never), 'invalid_request', 'bad'],
    [event({ type: 'message_start' }), 'unsupported_stream_event', 'message_start'],
    ['data: {"choices":[]}\n\n', 'unsupported_stream_event', 'without a type'],
    ['data: not json\n\n', 'unsupported_stream_event', 'not a JSON object'],
  ];
  for (const [text, kind, words] of kinds) {
    const verdict = responses.judgeStart(run(text));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind, text);
    t.match((verdict as GatewayError).message, words);
  }
});

test('the last event of a run marks the end, whatever follows it that says nothing', async (t) => {
  const marksEnd = (text: string) => responses.marksEnd?.(run(text));
  const huge = { ...completed, response: { text: 'x'.repeat(100_000), usage } };
  for (const named of [true, false]) {
    t.equal(marksEnd(event(delta, named) + event(completed, named)), true);
    t.equal(marksEnd(event(huge, named)), true);
    t.equal(marksEnd(event({ ...completed, type: 'response.incomplete' }, named)), true);
    t.equal(marksEnd(event({ ...completed, type: 'response.failed' }, named)), true);
    t.equal(marksEnd(`${event(completed, named)}data: [DONE]\n\n: bye\n\n`), true);
    t.equal(marksEnd(event(completed, named).replaceAll('\n', '\r\n')), true);
    t.equal(marksEnd(event(delta, named)), false);
    t.equal(marksEnd(event(created, named)), false);
  }
  t.equal(marksEnd(event({ response: {}, type: 'response.completed' } as never, false)), true);
  t.equal(marksEnd('data: {"type": "response.completed", "response": {}}\n\n'), true, 'as Python writes it');
  t.equal(marksEnd('data: [DONE]\n\n'), false);
  t.equal(marksEnd(': ping\n\n'), false);
  t.equal(marksEnd(''), false);
});

test('a stream is judged by what was noted and by its tail', async (t) => {
  t.same(responses.judgeEnd(run(event(completed)), notEnded), {
    state: 'complete',
    usage: tokens,
    error: null,
  });
  t.same(responses.judgeEnd(run(event(completed).slice(60)), ended), {
    state: 'complete',
    usage: tokens,
    error: null,
  });
  t.same(responses.judgeEnd(run(event(completed).slice(60)), notEnded), {
    state: 'incomplete',
    error: null,
    usage: tokens,
  });
  t.same(responses.judgeEnd(run(event(delta)), notEnded), { state: 'incomplete', usage: null, error: null });
  t.same(responses.judgeEnd(run(''), notEnded), { state: 'incomplete', usage: null, error: null });
  t.equal(responses.judgeEnd(run(event({ ...completed, type: 'response.failed' })), ended).state, 'failed');
  const failed = event({ type: 'error', message: 'x' } as never);
  t.equal(responses.judgeEnd(run(event(delta) + failed), notEnded).state, 'failed');
  t.equal(responses.judgeEnd(run(`${event(delta)}${failed}data: [DONE]\n\n`), notEnded).state, 'failed');
});

test('an error without a type has the last word, one inside an item has not', async (t) => {
  const untyped = 'data: {"error":{"message":"Quota","code":"rate_limit_exceeded"}}\n\n';
  t.equal(responses.judgeEnd(run(event(delta, false) + untyped), notEnded).state, 'failed');
  const item = { type: 'mcp_call', error: { type: 'error', code: 5 } };
  const done = event({ type: 'response.output_item.done', item } as never, false);
  t.equal(responses.judgeEnd(run(event(completed, false) + done), notEnded).state, 'complete');
  t.equal(responses.judgeEnd(run(done), notEnded).state, 'incomplete');
  const nested = event({ type: 'response.x', part: { type: 'response.completed' } } as never, false);
  t.equal(responses.marksEnd?.(run(nested)), false);
});

test('usage is the last object of the name that names tokens', async (t) => {
  t.same(responses.usageOf(run(JSON.stringify({ usage, output: [] }, null, 2))), tokens);
  const after = { usage, tools: [{ parameters: { properties: { usage: { type: 'string' } } } }] };
  t.same(responses.usageOf(run(JSON.stringify(after))), tokens, 'a property of that name is none');
  t.same(compactResponses.usageOf(run(JSON.stringify({ usage }))), tokens);
  t.equal(responses.usageOf(run('{"usage":null}')), null);
  t.equal(responses.usageOf(run('{"usage":{"input_tokens":1')), null);
  t.equal(responses.usageOf(run('{}')), null);
});
