import { test } from 'tap';
import {
  countTokens,
  generateContent,
  generateContentCodec,
} from '../../../src/protocols/generate-content/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { mayNeedRestoring } from '../may-need-restoring.js';
import { context, decode, foreignToken, sealer, target, token, user } from './samples.js';

const restore = (body: JsonObject) => generateContent.translation?.restore(body, sealer, target);
const model = (...parts: unknown[]) => ({ role: 'model', parts });
const call = { functionCall: { name: 'f', args: {} } };

test('a body without tokens stays as it is', async (t) => {
  for (const body of [
    {},
    { contents: null },
    { contents: [null, 5, user('hi'), { role: 'model' }, { parts: 5 }, model(null, 5)] },
    { contents: [model({ ...call, thoughtSignature: 'cmF3' }, { text: 'hm', thought: true })] },
    { contents: [model({ text: 'a', thoughtSignature: 5 }, { text: 'gw1.s.messages..x' })] },
    { contents: [model({ text: 'a', thoughtSignature: 'gw1.unknown' })] },
  ])
    t.equal(restore(body), null, JSON.stringify(body));
});

test('the vendor’s own signatures are taken out of their tokens, and nothing else changes', async (t) => {
  const body = {
    safetySettings: [],
    contents: [
      user('hi'),
      { unknown: 1, parts: [{ ...call, thoughtSignature: token('a/+='), more: 1 }], role: 'model' },
      { role: 'model', parts: { text: 'a', thought_signature: token('b') } },
      model({ text: 'hm', thought: true, thoughtSignature: token('c') }),
    ],
    labels: { a: 'b' },
  };
  const before = JSON.stringify(body);
  const restored = restore(body);
  t.equal(
    JSON.stringify(restored),
    before.replace(token('a/+='), 'a/+=').replace(token('b'), 'b').replace(token('c'), 'c'),
    'the order of the members as well',
  );
  t.equal(JSON.stringify(body), before, 'the body itself is left alone');
  t.equal((restored as { contents: unknown[] }).contents[0], body.contents[0], 'copied along the path alone');
});

test('contents that are one object lose their tokens as well', async (t) => {
  const part = { ...call, thoughtSignature: token('a') };
  t.same(restore({ contents: { role: 'model', parts: part } }), {
    contents: [{ role: 'model', parts: { ...call, thoughtSignature: 'a' } }],
  });
  t.equal(restore({ contents: user('hi') }), null);
});

test('what another vendor signed goes without its signature and its thoughts', async (t) => {
  const contentsOf = (...contents: unknown[]) => restore({ contents })?.contents;
  const thought = { text: 'hm', thought: true };
  t.same(contentsOf(user('hi'), model({ ...call, thoughtSignature: foreignToken })), [
    user('hi'),
    model({ ...call, thoughtSignature: 'skip_thought_signature_validator' }),
  ]);
  t.same(contentsOf(model({ text: 'a', thought_signature: foreignToken })), [model({ text: 'a' })]);
  t.same(contentsOf(model({ ...thought, thoughtSignature: foreignToken }, { text: 'a' })), [
    model({ text: 'a' }),
  ]);
  t.same(contentsOf(model(thought, thought, { text: 'a', thoughtSignature: foreignToken })), [
    model({ text: 'a' }),
  ]);
  const kept = { ...thought, thoughtSignature: 'cmF3' };
  t.same(contentsOf(model(kept, thought, { ...call, thoughtSignature: foreignToken })), [
    model(kept, { ...call, thoughtSignature: 'skip_thought_signature_validator' }),
  ]);
});

test('a call that no vendor has signed gets the replacement too', async (t) => {
  const written = generateContentCodec.encodeAnswer(
    {
      choices: [
        {
          parts: ['c1', 'c2'].map((id) => ({
            kind: 'toolCall',
            id,
            name: 'f',
            input: '{}',
            custom: false,
            at: '',
          })),
          finish: 'toolCalls',
          stopSequence: null,
        },
      ],
      usage: null,
    },
    context,
  );
  const { candidates } = JSON.parse(written) as { candidates: { content: JsonObject }[] };
  const content = candidates[0]?.content;
  const calls = ['c1', 'c2'].map((id) => ({ functionCall: { id, name: 'f', args: {} } }));
  t.ok(mayNeedRestoring(generateContent, written));
  t.same(restore({ contents: [user('hi'), content] })?.contents, [
    user('hi'),
    model({ ...calls[0], thoughtSignature: 'skip_thought_signature_validator' }, calls[1]),
  ]);
  t.same(
    decode({ contents: [user('hi'), content] }).turns,
    decode({ contents: [user('hi'), model(...calls)] }).turns,
    'for other upstreams it is none',
  );
});

test('nothing is left of what was there for a foreign signature alone', async (t) => {
  const bare = { text: '', thoughtSignature: foreignToken };
  for (const parts of [
    [bare],
    bare,
    [{ thoughtSignature: foreignToken }],
    [{ text: 'hm', thought: true }, bare],
  ])
    t.same(restore({ contents: [user('hi'), { role: 'model', parts }, user('ho')] })?.contents, [
      user('hi'),
      user('ho'),
    ]);
  t.same(restore({ contents: [model({ text: 'a' }, bare)] })?.contents, [model({ text: 'a' })]);
});

test('a count may have the request in a member', async (t) => {
  const body = (signature: string) => ({
    generateContentRequest: { model: 'm', contents: [model({ ...call, thoughtSignature: signature })] },
  });
  t.same(countTokens.translation?.restore(body(token('a')), sealer, target), body('a'));
  t.equal(countTokens.translation?.restore(body('a'), sealer, target), null);
});
