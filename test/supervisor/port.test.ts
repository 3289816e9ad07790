import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t, { test } from 'tap';
import { isOneAddress } from '../../src/config/networks.js';
import { claimPort } from '../../src/supervisor/port.js';
import { ownAddress } from '../support/free-port.js';

test('a port that somebody listens on is refused, and is free again after', async (t) => {
  const holder = createServer().listen(0, ownAddress);
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  await t.rejects(claimPort(ownAddress, port), {
    message: `${ownAddress}:${port} is in use by another process; choose another --port, or --take-over from a gateway`,
  });
  await t.rejects(claimPort('0.0.0.0', port), { message: /is in use/ });
  holder.close();
  await once(holder, 'close');
  t.equal(await claimPort(ownAddress, port), port);
});

test('port 0 becomes a free port, and another one each time, though nobody listens there yet', async (t) => {
  const draws = [0.25, 0.25, 0.75];
  t.intercept(Math, 'random', { value: () => draws.shift() ?? 0.5 });
  const [first, second] = [await claimPort('127.0.0.1', 0), await claimPort('127.0.0.1', 0)];
  t.ok(first > 0);
  t.ok(second > first, `${first} and ${second}`);
});

test('nothing listens while a port is claimed, so no client is let in and thrown out again', async (t) => {
  const made: string[] = [];
  const hook = createHook({ init: (_id, type) => void made.push(type) }).enable();
  t.teardown(() => hook.disable());
  await claimPort('127.0.0.1', 0);
  hook.disable();
  t.ok(made.includes('TCPWRAP'), 'a socket is bound');
  t.notOk(made.includes('TCPSERVERWRAP'), 'and listens to nobody');
});

test('a host without an address is refused in plain words', async (t) => {
  await t.rejects(claimPort('nowhere.invalid', 1234), {
    message: /^nowhere\.invalid:1234 cannot be listened on \(E[A-Z_]+\)$/,
  });
});

test('an address of another machine is refused in plain words', async (t) => {
  await t.rejects(claimPort('192.0.2.1', 0), { message: '192.0.2.1 is not an address of this machine' });
});

test('all addresses of IPv4 hold none of IPv6, and those of IPv6 hold all', async (t) => {
  const cases: [string, string, boolean][] = [
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '127.0.0.2', false],
    ['0.0.0.0', '127.0.0.1', true],
    ['0.0.0.0', 'localhost', true],
    ['0.0.0.0', '::1', false],
    ['::', '::1', true],
    ['::', '127.0.0.1', true],
    ['::', '0.0.0.0', true],
    ['::1', '127.0.0.1', false],
  ];
  for (const [one, other, isOne] of cases) {
    t.equal(isOneAddress(one, other), isOne, `${one} and ${other}`);
    t.equal(isOneAddress(other, one), isOne, `${other} and ${one}`);
  }
});

t.end();
