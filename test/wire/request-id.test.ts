import { test } from 'tap';
import { nextRequestNumber, requestIdOf, requestSeries } from '../../src/wire/request-id.js';

test('an id is its series and the eight hex digits of its number', async (t) => {
  for (const number of [0, 1, 255, 256, 65_535, 65_536, 0x1234_5678, 0xffff_ffff, 3])
    t.equal(requestIdOf('req_a', number), `req_a${number.toString(16).padStart(8, '0')}`);
});

test('numbers follow each other, and the series is of this process', async (t) => {
  const first = nextRequestNumber();
  t.equal(nextRequestNumber(), first + 1);
  t.match(requestSeries, /^req_[0-9a-f]{18}$/);
});
