import { test } from 'tap';
import { parseNetwork } from '../../src/config/networks.js';
import { clientAddress, isFromProxy, trustedProxies } from '../../src/http/client-address.js';

const trusted = trustedProxies(
  ['10.0.0.0/8', '192.168.1.1', 'fd00::/8'].flatMap((text) => parseNetwork(text) ?? []),
);

function bytes(...values: number[]): ArrayBuffer {
  return Uint8Array.from(values).buffer;
}

const proxy = bytes(10, 0, 0, 1);
const stranger = bytes(203, 0, 113, 9);

test('the address is that of the connection, whatever a stranger claims', (t) => {
  t.equal(clientAddress(stranger, '', trusted), '203.0.113.9');
  t.equal(clientAddress(stranger, '198.51.100.1', trusted), '203.0.113.9');
  t.equal(clientAddress(proxy, '198.51.100.1', trustedProxies([])), '10.0.0.1');
  t.end();
});

test('behind trusted proxies it is the last one in the header that is none of theirs', (t) => {
  const cases: [string, string][] = [
    ['198.51.100.1', '198.51.100.1'],
    ['6.6.6.6, 198.51.100.1', '198.51.100.1'],
    ['6.6.6.6,198.51.100.1 , 10.9.9.9,192.168.1.1', '198.51.100.1'],
    ['198.51.100.1:4711', '198.51.100.1'],
    ['[2001:DB8::1]:4711, fd00::7', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['::ffff:198.51.100.1', '198.51.100.1'],
    ['6.6.6.6, ::ffff:10.2.3.4', '6.6.6.6'],
    ['10.1.1.1, 10.2.2.2', '10.1.1.1'],
  ];
  for (const [header, client] of cases) t.equal(clientAddress(proxy, header, trusted), client, header);
  t.end();
});

test('garbage ends the walk at the proxy that passed it on', (t) => {
  for (const header of ['unknown', '6.6.6.6, _hidden', '6.6.6.6, ', ',', '6.6.6.6, 1.2.3', 'fe80::1%eth0'])
    t.equal(clientAddress(proxy, header, trusted), '10.0.0.1', header);
  t.equal(clientAddress(proxy, '6.6.6.6, x, 10.3.3.3', trusted), '10.3.3.3');
  t.end();
});

test('addresses of connections are written as people write them', (t) => {
  const v6 = (...tail: number[]) => bytes(...new Array(16 - tail.length).fill(0), ...tail);
  t.equal(clientAddress(v6(1), '', trusted), '::1');
  t.equal(clientAddress(bytes(0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 7), '', trusted), '2001:db8::7');
  t.equal(clientAddress(v6(0xff, 0xff, 203, 0, 113, 9), '', trusted), '203.0.113.9');
  t.equal(clientAddress(bytes(), '198.51.100.1', trusted), '');
  t.end();
});

test('a connection comes from a proxy, in either family', (t) => {
  t.ok(isFromProxy(proxy, trusted));
  t.ok(isFromProxy(bytes(...new Array(10).fill(0), 0xff, 0xff, 10, 0, 0, 1), trusted));
  t.ok(isFromProxy(bytes(0xfd, ...new Array(15).fill(0)), trusted));
  t.notOk(isFromProxy(stranger, trusted));
  t.end();
});
