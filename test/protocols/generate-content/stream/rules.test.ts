import { test } from 'tap';
import { GatewayError } from '../../../../src/errors.js';
import { lastUsage } from '../../../../src/protocols/generate-content/answer/usage.js';
import { judgeEnd, judgeStart, marksEnd } from '../../../../src/protocols/generate-content/stream/rules.js';

const run = (text: string) => Buffer.from(text);
const event = (block: object) => `data: ${JSON.stringify(block)}\n\n`;
const text = event({ candidates: [{ content: { parts: [{ text: '"finishReason":"STOP"' }] } }] });
const stop = event({
  candidates: [{ content: { parts: [{ text: 'b' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
});
const usage = { input: 3, output: 4, cached: 0, cacheWritten: 0, reasoning: 0 };
const facts = { usageAtStart: null, ended: false };
const endOf = (tail: string, ended = false) => judgeEnd(run(tail), { ...facts, ended });

test('comments are silence and a response is meaningful', async (t) => {
  t.equal(judgeStart(run(': ping\n\n: ping\n\n')), 'silence');
  t.equal(judgeStart(run(`: ping\n\n${text}`)), 'meaningful');
  t.equal(judgeStart(run(event({ promptFeedback: { blockReason: 'SAFETY' } }))), 'meaningful');
  t.equal(judgeStart(run(event({ usageMetadata: {} }))), 'meaningful');
  t.equal(judgeStart(run(event({ responseId: 'a', modelVersion: 'g' }))), 'meaningful');
});

test('a first event that is an error, or of another protocol, is an error', async (t) => {
  const kinds: [string, string][] = [
    ['data: {"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}\n\n', 'rate_limit_exceeded'],
    ['data: {"error":{"code":"too_many_requests","message":"x"}}\n\n', 'rate_limit_exceeded'],
    ['data: {"error":{"code":429}}\n\n', 'rate_limit_exceeded'],
    ['data: {"error":{"code":503,"status":"UNAVAILABLE"}}\n\n', 'overloaded'],
    ['data: {"error":{"status":"INVALID_ARGUMENT"}}\n\n', 'invalid_request'],
    ['data: {"error":{"status":"INTERNAL","code":500}}\n\n', 'upstream_error'],
    ['data: {"error":{"code":401}}\n\n', 'upstream_error'],
    ['data: {"error":{"status":"UNAUTHENTICATED"}}\n\n', 'upstream_error'],
    ['data: {"error":{"code":403,"status":"PERMISSION_DENIED"}}\n\n', 'upstream_error'],
    ['data: {"error":{"code":404,"status":"NOT_FOUND"}}\n\n', 'not_found'],
    ['data: {"error":{"code":409,"status":"ABORTED"}}\n\n', 'conflict'],
    ['data: {"error":{"code":413,"status":"INVALID_ARGUMENT"}}\n\n', 'request_too_large'],
    ['event: message_start\ndata: {"type":"message_start"}\n\n', 'unsupported_stream_event'],
    ['data: {"choices":[]}\n\n', 'unsupported_stream_event'],
    ['data: [1]\n\n', 'unsupported_stream_event'],
  ];
  for (const [stream, kind] of kinds) {
    const verdict = judgeStart(run(stream));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind, stream);
    t.equal((verdict as GatewayError).source, 'upstream', 'whatever it says, the upstream has failed');
  }
});

test('the end of a stream tells whether it was complete', async (t) => {
  t.same(endOf(text + stop), { state: 'complete', usage, error: null });
  t.equal(endOf(event({ promptFeedback: { blockReason: 'SAFETY' } })).state, 'complete');
  t.equal(endOf(text).state, 'incomplete', 'in a text it is no reason');
  t.equal(endOf('').state, 'incomplete');
  t.equal(endOf(stop.slice(30)).state, 'complete', 'the tail may begin anywhere');
  t.equal(endOf('t"}]},"finishReason" : "STOP"}]}\n\n').state, 'complete');
  t.equal(endOf('t"}]},"finishReason":null}]}\n\n').state, 'incomplete');
  t.equal(endOf(text.slice(30)).state, 'incomplete');
  t.equal(endOf(`${stop}${event({ usageMetadata: { promptTokenCount: 9 } })}`).state, 'complete');
  t.equal(
    endOf(event({ candidates: [{ finishReason: 'FINISH_REASON_UNSPECIFIED' }] })).state,
    'incomplete',
    'the value for no reason',
  );
  t.equal(endOf(`${text}${event({ error: { code: 500 } })}`).state, 'failed');
  t.equal(endOf(stop.replaceAll('\n', '\r\n')).state, 'complete');
  t.equal(endOf('long sources"}]}}]}\n\n', true).state, 'complete', 'what was noted before counts');
});

test('a run that names the reason marks the end', async (t) => {
  t.ok(marksEnd(run(stop)));
  t.ok(marksEnd(run(text + stop)));
  t.ok(marksEnd(run(event({ promptFeedback: { blockReason: 'OTHER' } }))));
  t.notOk(marksEnd(run(text)));
  t.notOk(marksEnd(run(event({ candidates: [{ finishReason: null }] }))));
  t.notOk(marksEnd(run(event({ candidates: [{ finishReason: 'FINISH_REASON_UNSPECIFIED' }] }))));
  t.ok(
    marksEnd(
      run(event({ candidates: [{ finishReason: 'FINISH_REASON_UNSPECIFIED' }, { finishReason: 'STOP' }] })),
    ),
  );
});

test('a reason counts only as a member of a candidate', async (t) => {
  const args = (member: object) =>
    event({
      candidates: [
        { content: { role: 'model', parts: [{ functionCall: { name: 'f', args: member } }] }, index: 0 },
      ],
      modelVersion: 'g',
    });
  for (const member of [
    { finishReason: 'done' },
    { blockReason: 'done' },
    { a: [{ finishReason: 'done' }] },
    { finishReason: 'done', long: '}'.repeat(3000) },
  ]) {
    const call = args(member);
    t.notOk(marksEnd(run(call)), call.slice(0, 200));
    t.notOk(marksEnd(run(call + text)));
    t.ok(marksEnd(run(call + stop)));
    t.equal(endOf(call).state, 'incomplete');
    t.equal(endOf(call.slice(30)).state, 'incomplete', 'cut');
    t.notOk(marksEnd(run(call.replace('data: {', 'data: {\ndata: ').replaceAll('}', '}\ndata: '))));
  }
  const behind = (sources: string) =>
    event({
      candidates: [{ content: {}, finishReason: 'STOP', groundingMetadata: { a: ['}', sources, '"'] } }],
      usageMetadata: {},
    });
  t.ok(marksEnd(run(behind('x'.repeat(200_000)))), 'however long what comes after it is');
  t.ok(marksEnd(run(behind('{').replaceAll('\n', '\r\n'))));
  t.ok(marksEnd(run(behind('x').replaceAll('}', '\ndata: }'))), 'over several lines');
  t.notOk(marksEnd(run(behind('x'.repeat(2000)).slice(0, 1000))), 'a part of an event is no end');
  t.notOk(marksEnd(run(event({ candidates: [{ finishReason: '' }] }))));
});

test('usage is read from the last whole object of its name', async (t) => {
  t.same(
    lastUsage(
      run(
        '{"usageMetadata":{"promptTokenCount":1},"x":{"usageMetadata" : {"promptTokenCount": 9,"candidatesTokenCount":8,"toolUsePromptTokenCount":5,"thoughtsTokenCount":3,"cachedContentTokenCount":2,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}],"totalTokenCount":25}}}',
      ),
    ),
    { input: 14, output: 11, cached: 2, cacheWritten: 0, reasoning: 3 },
  );
  t.equal(lastUsage(run('{"usageMetadata":{"promptTokenCount":1')), null);
  t.equal(lastUsage(run('{"usageMetadata":{"trafficType":"ON_DEMAND"}}')), null);
  t.equal(lastUsage(run('{"usageMetadata":null}')), null);
  t.equal(lastUsage(run('{}')), null);
});

test('the arguments of a call say nothing of what the answer has used', async (t) => {
  const args = { usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 0 } };
  const candidates = [{ content: { role: 'model', parts: [{ functionCall: { name: 'f', args } }] } }];
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4 };
  const used = { input: 3, output: 4 };
  t.match(lastUsage(run(JSON.stringify({ usageMetadata, candidates }))), used, 'before it');
  t.match(lastUsage(run(JSON.stringify([{ usageMetadata, candidates }]))), used, 'in a list of blocks');
  t.equal(lastUsage(run(JSON.stringify({ candidates }))), null, 'nowhere');
});

test('arguments that are full of reasons are looked through a few times, not once for each', async (t) => {
  const reasons = new Array(200_000).fill('"finishReason":"a","blockReason":"b"');
  for (const args of [`{${reasons.join()}}`, `[{${reasons.join('},{')}}]`]) {
    const call = `{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]}`;
    t.notOk(marksEnd(run(`data: {"candidates":[${call}}]}\n\n`)));
    t.ok(marksEnd(run(`data: {"candidates":[${call},"finishReason":"STOP"}]}\n\n`)), 'the last of all');
  }
});
