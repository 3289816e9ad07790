import { type Test, test } from 'tap';
import { startRouted } from '../support/routed.js';
import { post } from '../support/translated.js';
import { jsonAnswer } from '../support/upstream.js';

interface Told {
  readonly path: string;
  /** What the upstream answers with under status 200 in place of an answer. */
  readonly error: string;
  /** What the client is told when nobody else can be asked. */
  readonly status: number;
}

const user = { role: 'user', content: 'hi' };

const chat = '/v1/chat/completions';
const told: Readonly<Record<string, Told>> = {
  'a failure in a chat answer': {
    path: chat,
    error: '{"error":{"message":"provider returned error","code":502},"user_id":"u"}',
    status: 502,
  },
  'a limit in a chat answer': {
    path: chat,
    error: '{\n "error": {"message": "slow down", "code": 429}\n}',
    status: 429,
  },
  'an overloaded messages upstream': {
    path: '/v1/messages',
    error: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    status: 503,
  },
};

function start(t: Test, path: string, answers: readonly string[]) {
  const kind = path === chat ? 'chat' : 'messages';
  return startRouted(t, answers, { protocols: [kind], upstream: { kind } });
}

for (const [what, { path, error, status }] of Object.entries(told)) {
  const body = { model: 'm', max_tokens: 9, messages: [user] };
  const good =
    path === chat
      ? '{"object":"chat.completion","choices":[{"index":0,"message":{"content":"second"}}]}'
      : '{"type":"message","role":"assistant","content":[{"type":"text","text":"second"}]}';

  test(`${what} under a good status goes to the next target`, async (t) => {
    const routed = await start(t, path, [jsonAnswer(200, error), jsonAnswer(200, good)]);
    const answer = await post(routed.gateway.port, path, body);
    t.match(answer, { status: 200, body: good });
    t.strictSame(routed.counts(), [1, 1]);
  });

  test(`${what} under a good status is told as what it is where there is no other target`, async (t) => {
    const routed = await start(t, path, [jsonAnswer(200, error)]);
    const answer = await post(routed.gateway.port, path, body);
    t.equal(answer.status, status);
    t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
  });
}

test('an error that says nothing, and one beside an answer, pass as they came', async (t) => {
  const choices = '"choices":[{"index":0,"message":{"content":"a"}}]';
  for (const answer of [
    `{"error":null,${choices}}`,
    `{${choices},"error":{"message":"a part of it failed"}}`,
    '{"object":"chat.completion","error":null,"choices":[]}',
  ]) {
    const routed = await start(t, chat, [jsonAnswer(200, answer)]);
    t.match(await post(routed.gateway.port, chat, { model: 'm', messages: [user] }), {
      status: 200,
      body: answer,
    });
  }
});
