import { test } from 'tap';
import { tagSignature, untagSignature } from '../../src/conversation/signature.js';
import { tagUnsigned, unsignedReasoning, withText } from '../../src/conversation/unsigned-reasoning.js';

const part = (signature: string | null, text = '') => ({ kind: 'reasoning', text, signature }) as const;
const token = tagUnsigned('reasoning', 'vendor/Model-1');

test('reasoning goes back under the name that it came by', async (t) => {
  t.strictSame(unsignedReasoning(part(token, 'hm'), 'vendor/Model-1'), { name: 'reasoning', text: 'hm' });
  t.strictSame(unsignedReasoning(part(withText(token, 'hm “é” 🌍')), 'model-1'), {
    name: 'reasoning',
    text: 'hm “é” 🌍',
  });
  t.strictSame(
    unsignedReasoning(part(withText(token, 'all of it'), 'shown'), 'model-1'),
    { name: 'reasoning', text: 'all of it' },
    'a token with the text needs none beside it',
  );
  t.strictSame(unsignedReasoning(part(tagUnsigned('reasoning_content', ''), 'hm'), 'any'), {
    name: 'reasoning_content',
    text: 'hm',
  });
});

test('no other model gets it, and nothing gets what is no reasoning of this kind', async (t) => {
  t.equal(unsignedReasoning(part(token, 'hm'), 'model-2'), null);
  t.equal(unsignedReasoning(part(null, 'hm'), 'model-1'), null);
  t.equal(unsignedReasoning(part(token), 'model-1'), null, 'without a text');
  const foreign = tagSignature({ protocol: 'messages', model: 'm', value: 'reasoning', redacted: false });
  t.equal(unsignedReasoning(part(foreign, 'hm'), 'm'), null);
  t.equal(withText(foreign, 'hm'), foreign);
});

test('a token that a client made up gives no member but those of reasoning', async (t) => {
  for (const value of ['content', '__proto__', 'tool_calls:W10', 'reasoning":1,"x', ''])
    for (const redacted of [false, true])
      t.equal(
        unsignedReasoning(part(tagSignature({ protocol: 'chat', model: 'm', value, redacted }), 'hm'), 'm'),
        null,
        value,
      );
});

test('a token has its text once', async (t) => {
  const once = withText(token, 'a');
  t.equal(withText(once, 'b'), once);
  t.match(untagSignature(once), { protocol: 'chat', model: 'vendor/Model-1', redacted: true });
});
