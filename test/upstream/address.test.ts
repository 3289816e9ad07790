import { test } from 'tap';
import { isPublicAddress } from '../../src/upstream/address.js';
import { fc } from '../support/seed.js';

const publicAddresses = [
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2001:4860:4860::8888',
  '2A00:1450:4001:80B::200E',
  '::ffff:8.8.8.8',
  '::ffff:808:808',
  '64:ff9b::8.8.8.8',
  '2002:808:808::1',
];

const closedAddresses = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.255',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::127.0.0.1',
  '::8.8.8.8',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '0:0:0:0:0:FFFF:10.0.0.1',
  '::ffff:0:8.8.8.8',
  '64:ff9b::10.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::8.8.8.8',
  '100::1',
  '2001::1',
  '2001:0:808:808::1',
  '2001:10::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:a00:1::1',
  '2002:c0a8:1::',
  '3fff::1',
  '3fff:fff::1',
  '5f00::1',
  'fc00::1',
  'fdff:ffff::1',
  'fe80::1',
  'fe80::1%eth0',
  '2606:4700:4700::1111%eth0',
  'fec0::1',
  'ff02::1',
  'ff0e::1',
];

test('addresses of the public internet', async (t) => {
  for (const address of publicAddresses) t.equal(isPublicAddress(address), true, address);
});

test('addresses that are not public, in all their forms', async (t) => {
  for (const address of closedAddresses) t.equal(isPublicAddress(address), false, address);
});

test('what is no address is not public', async (t) => {
  for (const text of [
    '',
    'example.com',
    '8.8.8',
    '08.8.8.8',
    '0x8.8.8.8',
    '1.2.3.4.5',
    '[2606:4700::1]',
    ':::',
  ]) {
    t.equal(isPublicAddress(text), false, text);
  }
});

test('an IPv6 form is as public as the IPv4 address in it', async (t) => {
  const hex = (a: number, b: number): string => ((a << 8) | b).toString(16);
  const byte = fc.integer({ min: 0, max: 255 });
  fc.assert(
    fc.property(byte, byte, byte, byte, (a, b, c, d) => {
      const plain = `${a}.${b}.${c}.${d}`;
      const expected = isPublicAddress(plain);
      const forms = [
        `::ffff:${plain}`,
        `::ffff:${hex(a, b)}:${hex(c, d)}`,
        `64:ff9b::${plain}`,
        `2002:${hex(a, b)}:${hex(c, d)}:1::1`,
      ];
      for (const form of forms) t.equal(isPublicAddress(form), expected, form);
    }),
    { numRuns: 200 },
  );
});
