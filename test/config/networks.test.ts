import { test } from 'tap';
import { parseNetwork } from '../../src/config/networks.js';

test('networks and single addresses are read', (t) => {
  t.same(parseNetwork('10.0.0.0/8'), { address: '10.0.0.0', prefix: 8, family: 'ipv4' });
  t.same(parseNetwork('127.0.0.1'), { address: '127.0.0.1', prefix: 32, family: 'ipv4' });
  t.same(parseNetwork('0.0.0.0/0'), { address: '0.0.0.0', prefix: 0, family: 'ipv4' });
  t.same(parseNetwork('fd00::/8'), { address: 'fd00::', prefix: 8, family: 'ipv6' });
  t.same(parseNetwork('::1'), { address: '::1', prefix: 128, family: 'ipv6' });
  t.end();
});

test('anything else is none', (t) => {
  for (const text of ['', '10.0.0.0/33', '::/129', '10.0.0/8', 'localhost', '10.0.0.0/', '/8', 'fe80::1%1'])
    t.equal(parseNetwork(text), null, text);
  t.end();
});
