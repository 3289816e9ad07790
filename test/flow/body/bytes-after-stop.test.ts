import { test } from 'tap';
import { largestReceiveBuffer, mostAfterStop } from '../../../src/flow/body/upload.js';

const mebibyte = 1024 * 1024;

test('what the system may hold of an upload has its room after a stop, however little a worker may hold', (t) => {
  t.equal(mostAfterStop(64 * mebibyte, 32 * mebibyte), 64 * mebibyte);
  t.equal(mostAfterStop(mebibyte, 6 * mebibyte), 12 * mebibyte);
  t.equal(mostAfterStop(1024 * mebibyte, 6 * mebibyte), 128 * mebibyte);
  t.end();
});

test('the largest receive buffer is the last of three numbers, and the default of Linux where nobody tells it', (t) => {
  t.equal(largestReceiveBuffer('4096\t131072\t33554432\n'), 32 * mebibyte);
  for (const setting of [null, '', '4096 131072', '4096 131072 many', '4096 131072 -1'])
    t.equal(largestReceiveBuffer(setting), 6 * mebibyte, `${setting}`);
  t.ok(largestReceiveBuffer() > 4096, 'of this system');
  t.end();
});
