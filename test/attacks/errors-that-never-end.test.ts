import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { chatRequest, open } from '../support/raw-client.js';
import { startRawUpstream } from '../support/upstream.js';
import { heldBytes, heldWhen } from './held-bytes.js';

test('what has come of an error answer counts as memory of its call until the rest comes', async (t) => {
  const bytes = 245_000;
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(
      `HTTP/1.1 400 X\r\ncontent-type: application/json\r\ncontent-length: ${bytes + 1000}\r\n\r\n{"a":"${'x'.repeat(bytes)}`,
    );
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  const sockets = await Promise.all(Array.from({ length: 8 }, () => open(gateway.port, chatRequest(body))));
  await heldWhen(gateway, (held) => held >= 8 * bytes);
  t.ok(heldBytes(gateway) < 8 * 2 * bytes);
  for (const socket of sockets) socket.destroy();
  await heldWhen(gateway, (held) => held === 0);
});

test('an error answer for which its key has no room is not kept', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(
      `HTTP/1.1 400 X\r\ncontent-type: application/json\r\ncontent-length: 246000\r\n\r\n{"a":"${'x'.repeat(245_000)}`,
    );
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: { limits: { bodyBytes: 100_000, bufferedBytes: 1_000_000, bufferedBytesPerKey: 500_000 } },
  });
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  const sockets = await Promise.all(Array.from({ length: 8 }, () => open(gateway.port, chatRequest(body))));
  await upstream.request(7);
  await heldWhen(gateway, (held) => held > 200_000);
  t.ok(heldBytes(gateway) <= 1_000_000, `${heldBytes(gateway)}`);
  for (const socket of sockets) socket.destroy();
  await heldWhen(gateway, (held) => held === 0);
});
