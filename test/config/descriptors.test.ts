import { test } from 'tap';
import { connectionsWithin, usualConnections } from '../../src/config/descriptors.js';

const limits = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax processes             1                    2                    processes\nMax open files            ${soft.padEnd(20)} 1048576              files\n`;

test('half of the files that a process may have open are for connections to an upstream', (t) => {
  t.equal(connectionsWithin(limits('20000')), 9872);
  t.equal(connectionsWithin(limits('1024')), 1024, 'no fewer than ever');
  t.equal(connectionsWithin(limits('1048576')), 65_535, 'no more than there are ports');
  t.equal(connectionsWithin(limits('unlimited')), 65_535);
  t.equal(connectionsWithin(''), 1024, 'where the system does not say');
  t.ok(usualConnections >= 1024);
  t.end();
});
