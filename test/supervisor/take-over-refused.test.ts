import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { configWith, openStream } from './reloading.js';

test('a gateway that cannot start leaves the one on its port alone', async (t) => {
  const before = await startGateway(t, { workers: 1, file: configWith({}) });
  const args = ['--port', `${before.port}`, '--take-over'];
  // No such files.
  await t.rejects(
    startGateway(t, { workers: 1, file: configWith({ listen: { tls: { cert: 'x', key: 'y' } } }), args }),
  );
  t.match(await (await openStream(before.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
  t.notOk(before.logs.some((line) => line.includes('draining')));
});

test('a port of a stranger is not taken over', async (t) => {
  const stranger = createServer().listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.teardown(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  await t.rejects(
    startGateway(t, { workers: 1, file: configWith({}), args: ['--port', `${port}`, '--take-over'] }),
    {
      message: new RegExp(`127.0.0.1:${port} is in use, and not by one gateway of this user alone`),
    },
  );
});

test('a port that is free is simply taken', async (t) => {
  const gateway = await startGateway(t, { workers: 1, file: configWith({}), args: ['--take-over'] });
  t.strictSame(await gateway.stop(), { code: 0, signal: null });
});
