import { test } from 'tap';
import { chatCallId, hashOf, userId } from '../../../src/protocols/openai-shared/hashed-id.js';

test('a long id of a user becomes another that always stands for it', async (t) => {
  t.equal(userId('u'.repeat(64)), 'u'.repeat(64));
  const hashed = userId('u'.repeat(65));
  t.match(hashed, /^[\w-]{32}$/);
  t.equal(userId('u'.repeat(65)), hashed);
  t.equal(hashed, hashOf('u'.repeat(65)));
  t.not(userId('u'.repeat(66)), hashed);
});

test('a long id of a call becomes another, as long as chat takes it', async (t) => {
  t.equal(chatCallId('c'.repeat(40)), 'c'.repeat(40));
  t.equal(chatCallId('c'.repeat(41)), `call_${hashOf('c'.repeat(41))}`);
  t.equal(chatCallId('c'.repeat(41)).length, 37);
});
