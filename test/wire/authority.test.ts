import { test } from 'tap';
import { formatAuthority } from '../../src/wire/authority.js';

test('an IPv6 address is written in brackets', (t) => {
  t.equal(formatAuthority('::1', 80), '[::1]:80');
  t.equal(formatAuthority('127.0.0.1', 80), '127.0.0.1:80');
  t.end();
});
