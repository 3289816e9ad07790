import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { open } from '../support/raw-client.js';
import { openClient, refusalOf, startRealtimeUpstream, upgradeRequest } from '../support/realtime.js';

const large = JSON.stringify({ error: { message: 'x'.repeat(60_000), type: 'server_error' } });

test('a refusal that its client does not take gives the place of the session back once', async (t) => {
  let refusing = true;
  const upstream = await startRealtimeUpstream(t, undefined, (_request, socket) => {
    if (!refusing) return false;
    socket.end(
      `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${large.length}\r\n\r\n${large}`,
    );
    return true;
  });
  const { port, line } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { perKey: 2 } },
  });
  const held = await (async () => {
    refusing = false;
    return openClient(t, port);
  })();
  refusing = true;
  for (let round = 0; round < 5; round++) {
    const socket = await open(port, upgradeRequest());
    socket.pause();
    await line(({ status }) => status === 400);
    socket.resetAndDestroy();
  }
  await line(({ outcome }) => outcome === 'upstream_error');
  refusing = false;
  const second = await openClient(t, port);
  t.equal((await refusalOf(t, port)).status, 429, 'two places are two places');
  held.socket.close();
  await held.closed;
  second.socket.close();
  await second.closed;
  const again = [await openClient(t, port), await openClient(t, port)];
  t.equal((await refusalOf(t, port)).status, 429);
  for (const { socket } of again) socket.close();
});

test('a session whose upgrade fails in any way leaves its place free', async (t) => {
  let round = 0;
  const upstream = await startRealtimeUpstream(t, undefined, (_request, socket) => {
    if (++round > 6) return false;
    if (round % 2 === 0) socket.destroy();
    else socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    return true;
  });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { perKey: 1 }, routing: { retries: 0 } },
  });
  for (let failed = 0; round < 6; failed++)
    t.equal((await refusalOf(t, port)).status, 502, `refusal ${failed}`);
  const client = await openClient(t, port);
  t.equal((await refusalOf(t, port)).status, 429);
  client.socket.close();
  await client.closed;
});
