import { test } from 'tap';
import {
  signatureFor,
  tagSignature,
  tokenAsBytes,
  tokenMarks,
  untagSignature,
  withoutWords,
} from '../../src/conversation/signature.js';
import { contains } from '../../src/wire/json-skip.js';
import { fc } from '../support/seed.js';

const signature = fc.record({
  protocol: fc.constantFrom(
    'chat' as const,
    'responses' as const,
    'messages' as const,
    'generateContent' as const,
  ),
  model: fc.string({ unit: 'grapheme' }),
  value: fc.string({ unit: 'grapheme' }),
  redacted: fc.boolean(),
});

test('a token gives back what was put into it', async () => {
  fc.assert(
    fc.property(signature, (given) => {
      const opened = untagSignature(tagSignature(given));
      return JSON.stringify(opened) === JSON.stringify(given);
    }),
  );
});

test('a token may carry the words that were signed, and lose them', async (t) => {
  fc.assert(
    fc.property(signature, fc.string({ unit: 'grapheme' }), (given, words) => {
      const token = tagSignature({ ...given, redacted: false, words });
      const bare = tagSignature({ ...given, redacted: false });
      const wordless = tagSignature({ ...given, redacted: false, isWordless: true });
      return (
        untagSignature(token)?.words === words &&
        withoutWords(token) === (words === '' ? bare : wordless) &&
        untagSignature(wordless)?.isWordless === true &&
        withoutWords(wordless) === wordless &&
        withoutWords(bare) === bare
      );
    }),
  );
  t.equal(untagSignature('gw1.t.messages.x.y'), null, 'no end of the words');
});

test('a token that a field of bytes holds is read in both alphabets of base64', async () => {
  fc.assert(
    fc.property(signature, (given) => {
      const bytes = tokenAsBytes(tagSignature(given));
      const urlSafe = bytes.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
      return [bytes, urlSafe].every((text) => JSON.stringify(untagSignature(text)) === JSON.stringify(given));
    }),
  );
});

test('a token is for its own vendor alone', async (t) => {
  const token = tagSignature({ protocol: 'messages', model: 'claude-4.5', value: 'a.b=', redacted: false });
  t.equal(signatureFor('messages', token)?.value, 'a.b=');
  t.equal(signatureFor('generateContent', token), null);
  t.equal(signatureFor('messages', 'EqQBCkYIBRgCKkA='), null, 'a vendor made it, not this gateway');
  t.equal(signatureFor('messages', null), null);
  for (const broken of ['gw1.', 'gw1.s', 'gw1.s.messages', 'gw1.s.messages.x', 'gw1.s.other.x.y'])
    t.equal(untagSignature(broken), null, broken);
});

test('a body that carries a token has its mark', async (t) => {
  const mayHoldToken = (body: Buffer) => tokenMarks.some((mark) => contains(body, mark));
  const token = tagSignature({ protocol: 'messages', model: 'm', value: 'v', redacted: true });
  t.ok(mayHoldToken(Buffer.from(JSON.stringify({ signature: token }))));
  t.ok(mayHoldToken(Buffer.from(JSON.stringify({ signature: tokenAsBytes(token) }))));
  t.notOk(mayHoldToken(Buffer.from('{"signature":"RXdB","text":"gw2. Z3cx"}')));
});
