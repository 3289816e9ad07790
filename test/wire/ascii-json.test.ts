import { test } from 'tap';
import { asciiQuoted } from '../../src/wire/json.js';
import { fc } from '../support/seed.js';

test('any text is a JSON string of visible ASCII characters', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const quoted = asciiQuoted(text);
      return /^"[ -~]*"$/.test(quoted) && JSON.parse(quoted) === text;
    }),
  );
  t.equal(asciiQuoted('a"\\\n\u007f\u00e9\u2028'), '"a\\"\\\\\\n\\u007f\\u00e9\\u2028"');
  t.equal(JSON.parse(asciiQuoted('\ud800')), '\ud800', 'half a pair, too');
});
