import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { type RunningGateway, testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { goodAnswer, startRouted } from '../support/routed.js';

/* What is wrong with a request may be known before its place among those of its key is: it counts all the same. */

const head = (path: string, lines: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n${lines}`;
const chat = '/v1/chat/completions';
const form = '/v1/audio/transcriptions';
const json = 'content-type: application/json\r\n';
const refusals: Readonly<Record<string, readonly [number, string]>> = {
  'a body that is announced too large': [413, head(chat, `${json}content-length: 99999999\r\n\r\n`)],
  'a coding that nobody knows': [
    415,
    head(chat, `${json}content-encoding: foo\r\ncontent-length: 1\r\n\r\nx`),
  ],
  'a form that is none': [415, head(form, `${json}content-length: 1\r\n\r\nx`)],
  'a form without a boundary': [
    400,
    head(form, 'content-type: multipart/form-data\r\ncontent-length: 1\r\n\r\nx'),
  ],
  'a form in a coding': [
    415,
    head(
      form,
      'content-type: multipart/form-data; boundary=b\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx',
    ),
  ],
  'a form that is announced too large': [
    413,
    head(form, 'content-type: multipart/form-data; boundary=b\r\ncontent-length: 99999999999\r\n\r\n'),
  ],
  'a body that is no JSON': [400, head(chat, `${json}content-length: 1\r\n\r\nx`)],
};

async function start(t: Test): Promise<RunningGateway> {
  const limits = { requestsPerMinute: 3, concurrent: 1 };
  const { gateway } = await startRouted(t, [goodAnswer], {
    protocols: ['chat', 'audio'],
    leaseDelayMs: 20,
    config: { keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], limits }] },
  });
  return gateway;
}

for (const [what, [status, bytes]] of Object.entries(refusals)) {
  test(`${what} costs its key a request, and keeps no place of a call`, async (t) => {
    const { port } = await start(t);
    const seen: number[] = [];
    for (let i = 0; i < 3; i++) seen.push((await exchange(port, bytes)).status);
    t.strictSame(seen, [status, status, status]);
    const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    const fourth = await exchange(port, head(chat, `${json}content-length: ${text.length}\r\n\r\n${text}`));
    t.equal(fourth.status, 429, fourth.body);
    t.match(fourth.body, /requests per minute/);
  });
}
