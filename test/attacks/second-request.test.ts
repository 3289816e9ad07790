import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway, testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { jsonAnswer, type RawRequest, startRawUpstream } from '../support/upstream.js';

const victimKey = 'sk-victim';

/** Answers each request with its own words, and one for another path with what nobody but its sender may read. */
function answerOf({ head, body }: RawRequest): string {
  const words = head.startsWith('POST /v1/messages ') ? body.toString() : 'an answer for the attacker';
  const said = /says (\w+)/.exec(words)?.[1] ?? words;
  return jsonAnswer(
    200,
    JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'real',
      content: [{ type: 'text', text: said }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
  );
}

const chat = (key: string, says: string, lines = ''): Buffer => {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: `says ${says}` }] });
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\n${lines}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
};

test('a second request in a version header is 400, and the next tenant gets its own answer', async (t) => {
  const upstream = await startRawUpstream(t, (request) => request.socket.write(answerOf(request)));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { kind: 'messages' },
    config: {
      keys: [testKey, victimKey].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
    },
  });
  // The connection is there before, and is used again.
  t.match((await exchange(gateway.port, chat(victimKey, 'before'))).body, /"content":"before"/);
  for (const name of ['anthropic-version', 'vendorc-version']) {
    const attack =
      `${name}: 2023-06-01\u010d\u010acontent-length: 0\u010d\u010a\u010d\u010aPOST /v1/other HTTP/1.1\u010d\u010a` +
      'host: upstream\u010d\u010ax-rest: 1\r\n';
    const attacked = await exchange(gateway.port, chat(testKey, 'attack', attack));
    t.equal(attacked.status, 400);
    t.match(JSON.parse(attacked.body), { error: { type: 'invalid_request_error', param: name } });
    t.match(attacked.body, name);
    for (const says of ['first', 'second'])
      t.match((await exchange(gateway.port, chat(victimKey, says))).body, `"content":"${says}"`);
  }
  t.equal(upstream.requests.length, 5, 'nothing of the attack arrived');
  t.equal(upstream.sockets.size, 1, 'and no connection was harmed');
});
