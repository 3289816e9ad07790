import { test } from 'tap';
import { ownSecrets } from '../../../src/config/snapshot.js';
import { keyAt } from '../../../src/protocols/error-formats/vendor-account.js';

test('of several keys in an answer the first is found, whichever is named first in the config', (t) => {
  const [one, two] = ['sk-own-key-one-Zq81xW', 'sk-own-key-two-Vb52kR'];
  const secrets = ownSecrets([one, two], []);
  for (const text of [`a ${one} b ${two}`, `a ${two} b ${one}`, `a ${two} b ${two}`])
    t.equal(keyAt(Buffer.from(text), secrets), 2, text);
  t.equal(keyAt(Buffer.from('sk-own-key'), secrets), -1);
  t.end();
});
