import { test } from 'tap';
import {
  carryBeside,
  carryInId,
  carryingMark,
  cutId,
  tokensIn,
  withoutOwnTokens,
} from '../../src/conversation/carrying-id.js';
import { tagSignature, untagSignature } from '../../src/conversation/signature.js';

const signed = tagSignature({ protocol: 'messages', model: 'claude', value: 'U0lH+/=', redacted: false });
const encrypted = tagSignature({
  protocol: 'messages',
  model: 'claude',
  value: 'x'.repeat(500),
  redacted: true,
});

test('an id gives back the tokens that it carries', async (t) => {
  const carrying = carryInId('toolu_1', [signed, encrypted]) ?? '';
  t.match(carrying, /^toolu_1__thought__[A-Za-z0-9_-]+$/, 'the letters of an id');
  t.ok(Buffer.from(carrying).includes(carryingMark.whole));
  t.strictSame(cutId(carrying), { id: 'toolu_1', tokens: [signed, encrypted] });
  t.equal(withoutOwnTokens(carrying), 'toolu_1');
});

test('the signature that another gateway put into an id is a generateContent upstream’s own', async (t) => {
  const { id, tokens } = cutId('call_1__thought__U0lH+/A=');
  t.equal(id, 'call_1');
  t.match(untagSignature(tokens[0] ?? null), {
    protocol: 'generateContent',
    value: 'U0lH+/A=',
    redacted: false,
  });
  t.equal(
    withoutOwnTokens('call_1__thought__U0lH'),
    'call_1__thought__U0lH',
    'it is for that gateway to cut',
  );
});

test('any other id stays as it is', async (t) => {
  const many = `c${'__thought__U0lH'.repeat(17)}`;
  for (const id of ['', 'call_1', '__thought__U0lH', 'a__thought__', 'a__thought__no base64', many]) {
    t.strictSame(cutId(id), { id, tokens: [] }, id);
    t.equal(withoutOwnTokens(id), id);
  }
});

test('what is too long for an id is carried beside it, and no more than a bound', async (t) => {
  const long = tagSignature({
    protocol: 'messages',
    model: 'm',
    value: 'x'.repeat(20_000),
    redacted: false,
  });
  t.equal(carryInId('c', [long]), null);
  t.strictSame(tokensIn(carryBeside([long, signed]) ?? ''), [long, signed]);
  t.strictSame(tokensIn(signed), [], 'a token as it is stands in no such field');
  t.equal(carryBeside([`${long}${'x'.repeat(250_000)}`]), null);
  const many = Array.from({ length: 17 }, () => signed);
  t.equal(carryInId('c', many), null);
  t.equal(carryBeside(many), null);
});
