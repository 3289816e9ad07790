import { test } from 'tap';
import { contains, needleOf } from '../../src/wire/needle.js';

test('what is searched for is found from its rarest character, and only as a whole', async (t) => {
  for (const [text, tail] of [
    ['"service_tier"', 'vice_tier"'],
    ['"gw1.', 'gw1.'],
    ['__thought__Z3cx', 'Z3cx'],
    ['"speed"', 'peed"'],
    ['"rate"', 'rate"'],
  ] as const) {
    const needle = needleOf(text);
    t.equal(needle.tail.toString(), tail);
    t.ok(contains(Buffer.from(`{${text}`), needle));
    t.ok(contains(Buffer.from(`${tail} ${text}`), needle));
    t.notOk(contains(Buffer.from(`{${tail}`), needle), 'its end alone is not it');
    t.notOk(contains(Buffer.from(text.slice(0, -1)), needle));
  }
});
