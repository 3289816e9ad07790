import { test } from 'tap';
import { answerCallId, isLegalCallId } from '../../src/conversation/tool-calls.js';

const context = { id: 'a' };

test('a call keeps the id that its upstream gave it', async (t) => {
  t.equal(answerCallId('call_1', context, 0, 2), 'call_1');
});

test('a call without an id gets one that no other call of its answer has', async (t) => {
  const ids = [0, 1].flatMap((choice) => [0, 1].map((call) => answerCallId('', context, choice, call)));
  t.same(ids, ['call_a_0', 'call_a_1', 'call_a_1_0', 'call_a_1_1']);
});

test('an id is legal with up to 64 letters, digits, dashes and underscores', async (t) => {
  for (const id of ['a', 'A-9_', 'a'.repeat(64)]) t.ok(isLegalCallId(id), id);
  for (const id of ['', 'a.b', 'a b', 'é', 'a'.repeat(65), 'a\n'])
    t.notOk(isLegalCallId(id), JSON.stringify(id));
});
