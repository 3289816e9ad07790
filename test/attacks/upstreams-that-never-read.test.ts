import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { startGateway, testKey } from '../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';
import { connect } from '../support/responses-socket.js';

const mebibyte = 1024 * 1024;
const message = 'x'.repeat(400_000);

test('what waits for a realtime upstream that does not read is gone with its session', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.pause());
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  const event = JSON.stringify({ type: 'x', message });
  let isOver = false;
  const closed = client.closed.then((how) => {
    isOver = true;
    return how;
  });
  // More than the kernel takes on the way, and than may wait beside it.
  for (let sent = 0; sent < 300 && !isOver; sent++) {
    await new Promise((resolve) => client.socket.send(event, resolve));
  }
  t.equal((await closed).code, 1013);
  const { socket, closed: atUpstream } = await upstream.arrival(0);
  socket.resume();
  t.equal((await atUpstream).code, 1006, 'no close frame waits behind all that');
});

test('a call that its upstream has not taken is gone with the socket that it came over', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.pause());
  const { url, line } = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { responsesSocket: true },
    config: { models: { m: { protocols: ['responses'], targets: [{ upstream: 'u0', responses: true }] } } },
  });
  const client = await connect(t, url, { authorization: `Bearer ${testKey}` });
  client.send({ type: 'response.create', model: 'm', input: 'x'.repeat(14 * mebibyte) });
  const { socket, closed } = await upstream.arrival(0);
  const writes = () => Reflect.get(socket, '_socket') as { bytesRead: number };
  await eventually(() => writes().bytesRead > 0);
  client.socket.terminate();
  await line(({ msg }) => msg === 'request');
  socket.resume();
  t.equal((await closed).code, 1006);
});
