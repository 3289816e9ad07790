import { test } from 'tap';
import { quoted } from '../../src/wire/quoted.js';
import { cases, fc } from '../support/seed.js';

test('a text is quoted as JSON.stringify does it', async (t) => {
  const ascii = fc.string({ unit: 'binary-ascii', minLength: 60, maxLength: 300 });
  const any = fc.string({ unit: 'binary', maxLength: 200 });
  const sparse = fc
    .array(fc.tuple(fc.nat(200), fc.string({ unit: 'binary', maxLength: 2 })), { maxLength: 20 })
    .map((parts) => parts.map(([distance, others]) => 'x'.repeat(distance) + others).join(''));
  fc.assert(
    fc.property(fc.oneof(ascii, any, sparse), (text) => quoted(text) === JSON.stringify(text)),
    {
      numRuns: cases(2000),
    },
  );
  const all = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join('');
  t.equal(quoted(all), JSON.stringify(all));
  t.equal(quoted(`${all}\ud800`), JSON.stringify(`${all}\ud800`));
  t.equal(quoted(''), '""');
  const long = 'a sentence without escapes. '.repeat(2_000);
  const rare = [
    '\u0000',
    '\u001f',
    '\u007f',
    '\u00e9',
    '\u0141',
    '\u4e00',
    '\ud83d\ude00',
    '\ud83d',
    '\ude00',
    '"',
  ];
  for (const character of rare)
    for (const at of [0, 1, 15, 16, 16_383, 16_384, long.length]) {
      const text = `${long.slice(0, at)}${character}${long.slice(at)}`;
      t.equal(quoted(text), JSON.stringify(text), `${JSON.stringify(character)} at ${at}`);
      t.equal(
        quoted(`${text}\n`),
        JSON.stringify(`${text}\n`),
        `${JSON.stringify(character)} at ${at}, and one at the end`,
      );
    }
});
