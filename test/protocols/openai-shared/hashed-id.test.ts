import { test } from 'tap';
import { hashOf, userId } from '../../../src/protocols/openai-shared/hashed-id.js';

test('a long id of a user becomes another that always stands for it', async (t) => {
  t.equal(userId('u'.repeat(64)), 'u'.repeat(64));
  const hashed = userId('u'.repeat(65));
  t.match(hashed, /^[\w-]{32}$/);
  t.equal(userId('u'.repeat(65)), hashed);
  t.equal(hashed, hashOf('u'.repeat(65)));
  t.not(userId('u'.repeat(66)), hashed);
});
