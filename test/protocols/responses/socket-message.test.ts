import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import {
  joinItems,
  madeResponse,
  messageOf,
  readConversation,
  readMessage,
  socketStreamRules,
  warmUpAnswer,
} from '../../../src/protocols/responses/socket-message.js';

const text = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

test('a message is the body of a POST with a stream', (t) => {
  const cases = [
    ['{"type":"response.create"}', '{"stream":true}', false],
    [
      '{ "model":"m", "type" : "response.create","stream":false, "input":"x" }',
      '{"stream":true,"model":"m","input":"x"}',
      false,
    ],
    ['{"type":"response.create","generate":false,"a":1}', '{"stream":true,"a":1}', true],
    ['{"type":"response.create","generate":true,"a":1}', '{"stream":true,"a":1}', false],
  ] as const;
  for (const [message, body, isWarmUp] of cases) {
    const read = readMessage(text(message));
    t.notOk(read instanceof GatewayError);
    t.match(read, { isWarmUp });
    if (!(read instanceof GatewayError)) t.equal(read.body.toString(), body);
  }
  t.match(readMessage(text('[]')), { kind: 'invalid_json' });
  t.match(readMessage(text('{}')), { kind: 'missing_parameter', param: 'type' });
  t.match(readMessage(text('{"type":"response.cancel"}')), { kind: 'invalid_value', param: 'type' });
  t.end();
});

test('a conversation is put together from the items of its messages', (t) => {
  const first = readConversation(text({ model: 'm', input: 'say "hi"', store: false }));
  t.match(first, { previousId: null, store: false });
  t.strictSame(JSON.parse(`[${first?.items}]`), [{ type: 'message', role: 'user', content: 'say "hi"' }]);
  const next = readConversation(
    text('{"stream":true,"previous_response_id":"resp_1","input":[ {"a":1} , {"b":[2]} ],"model":"m"}'),
  );
  t.match(next, { previousId: 'resp_1', store: null });
  const all = joinItems(first?.items ?? '', next?.items ?? '');
  t.strictSame(JSON.parse(next?.withItems(all).toString() ?? ''), {
    stream: true,
    model: 'm',
    input: [{ type: 'message', role: 'user', content: 'say "hi"' }, { a: 1 }, { b: [2] }],
  });
  t.strictSame(JSON.parse(first?.withItems('').toString() ?? ''), { model: 'm', input: [], store: false });
  t.match(readConversation(text('{"input":[ ]}')), { items: '' });
  t.match(readConversation(text('{"previous_response_id":null}')), { items: '', previousId: null });
  t.equal(joinItems('', '1'), '1');
  t.equal(joinItems('1', ''), '1');
  for (const wrong of ['[]', '{"input":5}', '{"input":[],"previous_response_id":7}']) {
    t.equal(readConversation(text(wrong)), null, wrong);
  }
  t.end();
});

test('only the end of a response that was made can be gone on from', (t) => {
  const response = { id: 'resp_1', output: [{ type: 'message' }, { type: 'function_call' }] };
  for (const type of ['response.completed', 'response.incomplete']) {
    const made = { id: 'resp_1', items: '{"type":"message"},{"type":"function_call"}' };
    t.strictSame(madeResponse(JSON.stringify({ type, response })), made);
    t.strictSame(madeResponse(JSON.stringify({ sequence_number: 4, response, type })), made);
  }
  const others = [
    { type: 'response.failed', response },
    { type: 'response.created', response },
    { type: 'response.completed' },
    { type: 'response.completed', response: { id: 7, output: [] } },
    { type: 'response.completed', response: { id: 'x', output: {} } },
    { type: 'response.output_text.delta', delta: '"type":"response.completed"' },
  ];
  for (const event of others) t.equal(madeResponse(JSON.stringify(event)), null, JSON.stringify(event));
  for (const wrong of ['', '{', '[]', '{"type":"response.completed']) t.equal(madeResponse(wrong), null);
  t.end();
});

test('what an upstream says is told apart wherever its type stands', (t) => {
  const long = 'x'.repeat(1000);
  const cases = [
    [{ type: 'response.completed', response: {} }, 'last'],
    [{ type: 'response.incomplete' }, 'last'],
    [{ type: 'response.failed' }, 'last'],
    [{ type: 'error', error: {} }, 'error'],
    [{ error: { message: long }, type: 'error' }, 'error'],
    [{ response: { text: long }, type: 'response.completed' }, 'last'],
    [{ type: 'response.created', response: { type: 'error' } }, 'more'],
    [{ response: { type: 'error' }, delta: long, type: 'response.output_text.delta' }, 'more'],
    [{ a: 1 }, 'more'],
    ['no JSON', 'more'],
  ] as const;
  for (const [message, meaning] of cases) {
    t.equal(socketStreamRules.judge(text(message)), meaning, JSON.stringify(message).slice(0, 80));
  }
  t.end();
});

test('an error in place of an answer is the HTTP answer that says the same', (t) => {
  const error = { code: 'x', message: 'm' };
  const cases = [
    [{ type: 'error', status: 429, error }, 429],
    [{ type: 'error', status_code: 403, error }, 403],
    [{ type: 'error', error }, 502],
    [{ type: 'error', status: 200, error }, 502],
  ] as const;
  for (const [message, status] of cases) {
    const refusal = socketStreamRules.refusal(text(message));
    t.equal(refusal.status, status);
    t.match(JSON.parse(refusal.body.toString()), { error });
    t.notMatch(refusal.body.toString(), 'type');
  }
  t.end();
});

test('the message for an upstream says what the body says', (t) => {
  const body = [text('{"stream":true,"model":'), text('"m","input":"x"}')];
  t.equal(messageOf(body, false).toString(), '{"type":"response.create","model":"m","input":"x"}');
  t.equal(
    messageOf(body, true).toString(),
    '{"type":"response.create","generate":false,"model":"m","input":"x"}',
  );
  t.equal(messageOf([text('{"stream":true}')], false).toString(), '{"type":"response.create"}');
  t.match(JSON.parse(warmUpAnswer('m', '1', 5)), {
    id: 'resp_1',
    object: 'response',
    created_at: 5,
    status: 'completed',
    model: 'm',
    output: [],
    usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  });
  t.end();
});
