import { test } from 'tap';
import { readThread, withoutThread } from '../../../src/protocols/messages/conversation.js';
import { decodeRequest as decode } from '../../../src/protocols/messages/request/decode.js';
import {
  messagesRequest,
  passedCountTokensRequest,
  passedMessagesRequest,
} from '../../../src/protocols/messages/request/schema.js';

const bodyOf = (body: object | string): Buffer =>
  Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
const tools = [{ name: 'look', input_schema: { type: 'object' } }];
const asked = { role: 'user', content: 'Wo ist "Ōsaka"?' };
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

test('what is no thread that can be begun is not translated', async (t) => {
  const decoded = (thread: unknown) => decode({ ...begun, thread }, false);
  t.equal(decoded({ type: 'create' }).leftOut?.length ?? 0, 0);
  t.equal(decoded(null).turns.length, 1);
  for (const thread of ['create', { type: 'fork' }, { type: 'continue', previous_message_id: 'msg_1' }])
    t.throws(() => decoded(thread), { status: 400, code: 'thread_unsupported_request' });
});

test('a body is whole without the thread that it begins', async (t) => {
  const { thread: _, ...whole } = { ...begun, thread: { type: 'create' } };
  const bare = withoutThread(bodyOf({ thread: { type: 'create' }, ...begun }));
  t.strictSame(JSON.parse(String(bare)), whole);
  for (const none of [begun, { ...begun, thread: null }, { ...begun, system: '"thread"' }])
    t.equal(withoutThread(bodyOf(none)), null);
  for (const thread of ['create', { type: 'fork' }, { type: 'continue', previous_message_id: 'msg_1' }])
    t.throws(() => withoutThread(bodyOf({ ...begun, thread })), { code: 'thread_unsupported_request' });
});

test('no body has a thread twice', async (t) => {
  const twice = bodyOf('{"model":"m","thread":{"type":"create"},"messages":[],"Thread":null}');
  for (const { guard } of [passedMessagesRequest, passedCountTokensRequest, messagesRequest])
    t.throws(() => guard.look(twice, 0), { status: 400, message: /thread/ });
  const inner = bodyOf('{"thread":{"type":"create","type":"continue"},"messages":[]}');
  t.throws(() => passedMessagesRequest.guard.look(inner, 0), { status: 400, message: /thread.type/ });
});
