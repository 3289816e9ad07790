import { test } from 'tap';
import { quoted } from '../../src/wire/json.js';
import { fc } from '../support/seed.js';

test('a text is quoted as JSON.stringify does it', async (t) => {
  const ascii = fc.string({ unit: 'binary-ascii', minLength: 60, maxLength: 300 });
  const any = fc.string({ unit: 'binary', maxLength: 200 });
  fc.assert(fc.property(fc.oneof(ascii, any), (text) => quoted(text) === JSON.stringify(text)));
  const all = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join('');
  t.equal(quoted(all), JSON.stringify(all));
  t.equal(quoted(`${all}\ud800`), JSON.stringify(`${all}\ud800`));
  t.equal(quoted(''), '""');
});
