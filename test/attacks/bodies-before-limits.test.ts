import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { type RunningGateway, testKey } from '../support/gateway.js';
import { chatRequest, open, readAnswer } from '../support/raw-client.js';
import { goodAnswer, startRouted } from '../support/routed.js';
import { fileOf, formOf, model, uploadHead } from '../support/upload-form.js';
import { heldBytes, heldWhen } from './held-bytes.js';

const mebibyte = 1024 * 1024;

/** A gateway whose worker hears of its limits only after a while. */
async function start(t: Test, limits: object): Promise<RunningGateway> {
  const { gateway } = await startRouted(t, [goodAnswer], {
    protocols: ['chat', 'audio'],
    leaseDelayMs: 150,
    config: { keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], limits }] },
  });
  return gateway;
}

const body = (bytes: number) =>
  JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(bytes) }] });

for (const [what, bytes] of [
  ['a small body', chatRequest(body(10))],
  ['a large body', chatRequest(body(6 * mebibyte))],
  ['a small form', Buffer.concat([Buffer.from(uploadHead({})), chunkOf(formOf([model, fileOf(1000)]))])],
  ['a large form', formBytes(6 * mebibyte)],
] as const) {
  test(`${what} waits for the limits of its key, and is served then`, async (t) => {
    const gateway = await start(t, { requestsPerMinute: 2, concurrent: 1 });
    const socket = await open(gateway.port, bytes);
    const answer = await readAnswer(socket);
    t.equal(answer.status, 200, answer.body.slice(0, 200));
    socket.destroy();
    await heldWhen(gateway, (held) => held === 0);
  });

  test(`${what} of a key that has used up its limits is refused once that is known`, async (t) => {
    const gateway = await start(t, { requestsPerMinute: 1 });
    const first = await open(gateway.port, chatRequest(body(1)));
    t.equal((await readAnswer(first)).status, 200);
    const socket = await open(gateway.port, bytes);
    t.equal((await readAnswer(socket)).status, 429);
    t.equal(heldBytes(gateway), 0);
    for (const each of [first, socket]) each.destroy();
  });
}

test('little is read of a body whose call waits for its limits', async (t) => {
  const gateway = await start(t, { requestsPerMinute: 2 });
  const socket = await open(gateway.port, chatRequest(' '.repeat(24 * mebibyte)));
  await heldWhen(gateway, (held) => held > 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.ok(heldBytes(gateway) < 12 * mebibyte, `${heldBytes(gateway)}`);
  t.equal((await readAnswer(socket)).status, 400, 'all of it has come, and it is no JSON');
  socket.destroy();
});

function formBytes(bytes: number): Buffer {
  const form = formOf([model, fileOf(bytes)]);
  return Buffer.concat([Buffer.from(uploadHead({ length: form.length })), form]);
}

function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n0\r\n\r\n'),
  ]);
}
