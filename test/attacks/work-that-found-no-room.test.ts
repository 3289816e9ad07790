import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { startTranslated } from '../support/translated.js';
import { jsonAnswer } from '../support/upstream.js';

const mebibyte = 1024 * 1024;

/** The bytes of a chat call. */
function call(): string {
  const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
    `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
  );
}

test('calls whose answers find no room have cost an upstream, and count as requests', async (t) => {
  let asked = 0;
  const answer = JSON.stringify({
    candidates: [
      {
        content: { role: 'model', parts: [{ text: 'x'.repeat(3 * mebibyte) }] },
        finishReason: 'STOP',
        index: 0,
      },
    ],
  });
  const { port } = await startTranslated(t, {
    kind: 'generateContent',
    answer: ({ socket }) => {
      asked++;
      socket.write(jsonAnswer(200, answer));
    },
    config: {
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], limits: { requestsPerMinute: 3 } }],
      limits: { bodyBytes: mebibyte, bufferedBytes: 8 * mebibyte },
    },
  });
  const statuses: number[] = [];
  for (let i = 0; i < 6; i++) statuses.push((await exchange(port, call())).status);
  t.strictSame(statuses, [503, 503, 503, 429, 429, 429]);
  t.equal(asked, 3, 'the upstream has worked no more often than the limit lets it');
});
