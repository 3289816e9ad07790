import { test } from 'tap';
import { readKeptMessage, replyOf, writeKeptMessage } from '../../../src/protocols/messages/kept.js';
import { decodeRequest as decode } from '../../../src/protocols/messages/request/decode.js';
import {
  messagesRequest,
  passedCountTokensRequest,
  passedMessagesRequest,
} from '../../../src/protocols/messages/request/schema.js';
import { historyOf, readThread } from '../../../src/protocols/messages/thread.js';

const bodyOf = (body: object | string): Buffer =>
  Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
const tools = [{ name: 'look', input_schema: { type: 'object' } }];
const asked = { role: 'user', content: 'Wo ist "Ōsaka"?' };
const called = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] };
const seen = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'here' }] };
const begun = { model: 'm', max_tokens: 9, system: 'Be brief.', tools, messages: [asked] };

test('a body that is of no thread is none', async (t) => {
  for (const body of [begun, { ...begun, thread: null }, '[]', { ...begun, thread: {}, messages: 'hi' }])
    t.equal(readThread(bodyOf(body)), null);
});

test('a thread is begun, or gone on with', async (t) => {
  t.equal(readThread(bodyOf({ ...begun, thread: { type: 'create' } }))?.previousId, null);
  const thread = { type: 'continue', previous_message_id: 'msg_1' };
  t.equal(readThread(bodyOf({ model: 'm', thread }))?.previousId, 'msg_1');
  for (const other of ['create', { type: 'fork' }, { type: 'continue' }])
    t.equal(readThread(bodyOf({ ...begun, thread: other })), null, 'it is for whoever knows it');
});

test('a request that goes on is the whole one with what its thread holds', async (t) => {
  const first = readThread(bodyOf({ ...begun, thread: { type: 'create' } }));
  const kept = writeKeptMessage({
    model: 'm',
    before: [],
    settings: first?.settings ?? '',
    messages: first?.messages ?? '',
    reply: JSON.stringify(called),
  });
  const record = readKeptMessage(kept);
  if (record === null) throw new Error('it is a record');
  t.match(record, { model: 'm', before: [] });
  const next = { model: 'm', max_tokens: 5, messages: [seen], stream: true };
  const thread = { type: 'continue', previous_message_id: 'msg_1' };
  const whole = readThread(bodyOf({ thread, ...next }))?.wholeBody(historyOf([record]));
  t.strictSame(JSON.parse(String(whole)), {
    ...begun,
    max_tokens: 5,
    stream: true,
    thread: { type: 'create' },
    messages: [asked, called, seen],
  });
  const resumed = readThread(bodyOf({ ...next, thread, messages: [] }))?.wholeBody(historyOf([record]));
  t.strictSame(JSON.parse(String(resumed)).messages, [asked, called]);
  const changed = readThread(bodyOf({ ...next, thread, system: 'Be long.' }))?.wholeBody(historyOf([record]));
  t.match(JSON.parse(String(changed)), { system: 'Be long.', tools });
});

test('a later record of a thread adds to those before it', async (t) => {
  const one = { model: 'm', before: [], settings: '{"system":"a"}', messages: '1', reply: '2' };
  const two = { model: 'm', before: ['msg_1'], settings: '{}', messages: '3,4', reply: '5' };
  t.strictSame(historyOf([one, two]), { settings: '{"system":"a"}', messages: '1,2,3,4,5' });
  t.strictSame(readKeptMessage(writeKeptMessage(two)), two);
  t.equal(readKeptMessage('{"v":2}'), null);
  t.equal(readKeptMessage('{"v":1,"response":{}}'), null);
  t.equal(readKeptMessage('no JSON'), null);
});

test('an answer is the next message, unless it is a refusal', async (t) => {
  const answer = { id: 'msg_2', type: 'message', role: 'assistant', model: 'm', content: called.content };
  t.strictSame(replyOf(JSON.stringify({ ...answer, stop_reason: 'tool_use' })), {
    id: 'msg_2',
    reply: JSON.stringify(called),
  });
  t.equal(replyOf(JSON.stringify({ ...answer, stop_reason: 'refusal' })), null);
  t.equal(replyOf('{"type":"error"}'), null);
});

test('what is no thread that can be begun is not translated', async (t) => {
  const decoded = (thread: unknown) => decode({ ...begun, thread }, false);
  t.equal(decoded({ type: 'create' }).leftOut?.length ?? 0, 0);
  t.equal(decoded(null).turns.length, 1);
  for (const thread of ['create', { type: 'fork' }, { type: 'continue', previous_message_id: 'msg_1' }])
    t.throws(() => decoded(thread), { status: 400, code: 'thread_unsupported_request' });
});

test('no body has a thread twice', async (t) => {
  const twice = bodyOf('{"model":"m","thread":{"type":"create"},"messages":[],"Thread":null}');
  for (const { guard } of [passedMessagesRequest, passedCountTokensRequest, messagesRequest])
    t.throws(() => guard.look(twice, 0), { status: 400, message: /thread/ });
  const inner = bodyOf('{"thread":{"type":"create","type":"continue"},"messages":[]}');
  t.throws(() => passedMessagesRequest.guard.look(inner, 0), { status: 400, message: /thread.type/ });
});
