import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway, testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { heldBytes, heldWhen } from './held-bytes.js';

const large = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'x'.repeat(400_000) }, finish_reason: 'stop' },
  ],
});
const body = JSON.stringify({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });

test('a key whose answers find no room reaches its upstream no more often than its limits say', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, large));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      limits: { bodyBytes: 64 * 1024, bufferedBytes: 1024 * 1024, bufferedBytesPerKey: 128 * 1024 },
      models: { m: { protocols: ['messages'], targets: [{ upstream: 'u0', model: 'm' }] } },
      keys: [
        {
          id: 'k',
          hash: hashKey(testKey),
          groups: ['default'],
          limits: { requestsPerMinute: 3, concurrent: 1 },
        },
      ],
    },
  });
  const statuses: number[] = [];
  for (let count = 0; count < 6; count++) {
    const answer = await exchange(
      gateway.port,
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${testKey}\r\nanthropic-version: 2023-06-01\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    statuses.push(answer.status);
  }
  t.strictSame(statuses, [503, 503, 503, 429, 429, 429]);
  t.equal(upstream.requests.length, 3);
  await heldWhen(gateway, (held) => held === 0);
  t.equal(heldBytes(gateway), 0);
});
