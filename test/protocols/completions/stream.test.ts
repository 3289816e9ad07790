import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { completions } from '../../../src/protocols/completions/index.js';

const run = (text: string) => Buffer.from(text);
const { judgeStart, judgeEnd, hideUsage, usageOf: lastUsage } = completions;
const nothing = { usageAtStart: null, ended: false };
const base = { id: 'cmpl-1', object: 'text_completion', created: 1, model: 'm' };
const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`;
const chunk = (text: string, finish: string | null = null) =>
  event({ ...base, choices: [{ text, index: 0, logprobs: null, finish_reason: finish }] });
const counted = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const usageEvent = event({ ...base, choices: [], usage: counted });
const done = 'data: [DONE]\n\n';
const usage = { input: 3, output: 4, cached: 0, cacheWritten: 0, reasoning: 0 };

test('a chunk of text is meaningful, comments are silence', async (t) => {
  t.equal(judgeStart(run(': ping\n\n')), 'silence');
  t.equal(judgeStart(run(`: ping\n\n${chunk('a')}`)), 'meaningful');
  t.equal(judgeStart(run(event({ object: 'text_completion' }))), 'meaningful');
  t.match(judgeStart(run('data: [DONE]\n\n')), { kind: 'upstream_error' }, 'there is no answer in it');
});

test('a first event that is an error, or of another protocol, is an error', async (t) => {
  const kinds: [string, string][] = [
    [event({ error: { message: 'x', code: 'rate_limit_exceeded' } }), 'rate_limit_exceeded'],
    [event({ error: { message: 'x' } }), 'upstream_error'],
    [event({ type: 'message_start' }), 'unsupported_stream_event'],
    [event({ object: 'chat.completion.chunk' }), 'unsupported_stream_event'],
    ['data: null\n\n', 'unsupported_stream_event'],
    ['data: {"choices"\n\n', 'unsupported_stream_event'],
  ];
  for (const [text, kind] of kinds) {
    const verdict = judgeStart(run(text));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind, text);
  }
  const named = judgeStart(run('event: message_start\ndata: {}\n\n'));
  t.match(named, { message: /completions protocol: it has an event of type message_start/ });
  t.equal(judgeStart(run('event: ping\ndata: {}\n\n')), 'silence', 'a server’s own events say nothing');
});

test('the end of a stream tells whether it was complete, and its usage', async (t) => {
  t.same(judgeEnd(run(chunk('a') + chunk('', 'stop') + usageEvent + done), nothing), {
    state: 'complete',
    error: null,
    usage,
  });
  t.same(judgeEnd(run(chunk('a', 'length')), nothing), { state: 'complete', usage: null, error: null });
  t.equal(judgeEnd(run(chunk('a')), nothing).state, 'incomplete');
  t.equal(judgeEnd(run(chunk('data: [DONE]')), nothing).state, 'incomplete');
  t.equal(judgeEnd(run(event({ error: { message: 'x' } }) + done), nothing).state, 'failed');
  t.equal(judgeEnd(run(`ut off","finish_reason":"stop"}]}\n\n`), nothing).state, 'complete');
});

test('the usage chunk is taken out from among others, with what stands for it there', async (t) => {
  const before = chunk('the "usage":{"prompt_tokens":1} of words');
  const hidden = (text: string): string => hideUsage(run(text)).toString();
  t.equal(hidden(before + usageEvent + done), before + done);
  t.equal(hidden(event({ ...base, choices: [], usage: null })), event({ ...base, choices: [] }));
  const inLastChunk = event({ ...base, choices: [{ text: 'a' }], usage: counted });
  t.equal(hidden(inLastChunk), inLastChunk);
});

test('usage is read from a whole answer', async (t) => {
  t.same(completions.usageOf(run(JSON.stringify({ ...base, choices: [], usage: counted }))), usage);
  t.equal(completions.usageOf(run(JSON.stringify({ ...base, usage: null }))), null);
  t.equal(lastUsage(run('{"usage":{"total_tokens":3}}')), null);
});
