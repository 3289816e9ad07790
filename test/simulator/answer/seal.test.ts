import { test } from 'tap';
import { seal, unseal } from '../../../src/simulator/answer/seal.js';
import { fc } from '../../support/seed.js';

test('a sealed text comes out again, but not as another kind, and not after any change', async (t) => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.nat(),
      fc.constantFrom('A', '+', '=', ''),
      (text, at, other) => {
        const sealed = seal('thinking', text);
        const place = at % sealed.length;
        const changed = sealed.slice(0, place) + other + sealed.slice(place + 1);
        return (
          seal('thinking', text) === sealed &&
          unseal('thinking', sealed) === text &&
          unseal('thought', sealed) === null &&
          (changed === sealed || unseal('thinking', changed) === null)
        );
      },
    ),
  );
  for (const foreign of ['', 'AAAA', 'not base64 at all', `${seal('thinking', 'a')}\n`]) {
    t.equal(unseal('thinking', foreign), null, JSON.stringify(foreign));
  }
});
