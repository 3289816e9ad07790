import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t, { test } from 'tap';
import { claimPort } from '../../src/supervisor/port.js';

test('a port that somebody listens on is refused, and is free again after', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  await t.rejects(claimPort('127.0.0.1', port), {
    message: `127.0.0.1:${port} is in use by another process; choose another --port, or --take-over from a gateway`,
  });
  await t.rejects(claimPort('0.0.0.0', port), { message: /is in use/ });
  holder.close();
  await once(holder, 'close');
  t.equal(await claimPort('127.0.0.1', port), port);
});

test('port 0 becomes a free port', async (t) => {
  t.ok((await claimPort('127.0.0.1', 0)) > 0);
});

test('an address of another machine is refused in plain words', async (t) => {
  await t.rejects(claimPort('192.0.2.1', 0), { message: '192.0.2.1 is not an address of this machine' });
});

t.end();
