import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'tap';
import {
  abstractHolders,
  argumentsOf,
  innerPidOf,
  isOwn,
  listenersOn,
  parentOf,
} from '../../src/supervisor/take-over.js';

for (const [host, found, missed] of [
  ['127.0.0.1', ['127.0.0.1', '0.0.0.0'], ['127.0.0.2', '::1']],
  ['0.0.0.0', ['127.0.0.1', '127.0.0.2', '0.0.0.0'], []],
  ['::1', ['::1', '::'], ['127.0.0.1']],
] as const) {
  test(`who listens on ${host} is found`, async (t) => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (const address of found) t.strictSame(listenersOn(address, port), [process.pid], address);
    for (const address of missed) t.strictSame(listenersOn(address, port), [], address);
    server.close();
    await once(server, 'close');
    t.notOk(listenersOn(host, port).includes(process.pid));
  });
}

test('who has an abstract name is found', async (t) => {
  const name = `model-gateway-test/${process.pid}`;
  t.strictSame(abstractHolders(name), []);
  const server = createServer().listen(`\0${name}`);
  await once(server, 'listening');
  t.strictSame(abstractHolders(name), [process.pid]);
  t.strictSame(abstractHolders(name.slice(0, -1)), []);
  server.close();
});

test('a process has its arguments, its parent and its user, and one that is gone has none', (t) => {
  t.equal(parentOf(process.pid), process.ppid);
  t.equal(argumentsOf(process.pid)[0], process.argv0);
  t.equal(innerPidOf(process.pid), process.pid);
  t.equal(isOwn(process.pid), true);
  t.equal(isOwn(2 ** 30), false);
  t.equal(innerPidOf(2 ** 30), 0);
  t.equal(parentOf(2 ** 30), 0);
  t.strictSame(argumentsOf(2 ** 30), []);
  t.end();
});
