import assert from 'node:assert/strict';
import { test } from 'tap';
import {
  carryBeside,
  carryInId,
  carryingMark,
  cutId,
  hasLostTokens,
  markWithoutReasoning,
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

test('an id may tell that no reasoning led to its call, and carries nothing then', async (t) => {
  const marked = markWithoutReasoning('c1');
  t.ok(Buffer.from(marked).includes(carryingMark.whole));
  const cut = cutId(marked);
  t.strictSame(cut, { id: 'c1', tokens: [] });
  t.notOk(hasLostTokens(marked, cut));
  t.equal(withoutOwnTokens(marked), 'c1');
  const damaged = `${marked}Om`;
  t.ok(hasLostTokens(damaged, cutId(damaged)));
});

test('a mark in an id leaves the signature of another gateway in it, and few ids too long for clients', async (t) => {
  const ofOther = `call_1__thought__${'Q'.repeat(40)}`;
  t.equal(cutId(ofOther).tokens.length, 1);
  t.strictSame(cutId(markWithoutReasoning(ofOther)), cutId(ofOther));
  t.equal(withoutOwnTokens(markWithoutReasoning(ofOther)), ofOther);
  // The ids of vLLM are the longest of those that are common.
  t.ok(markWithoutReasoning(`chatcmpl-tool-${'0'.repeat(32)}`).length <= 64);
});

test('an id that a client has cut off or changed carries nothing', async (t) => {
  const carrying = carryInId('toolu_1', [signed, encrypted]) ?? '';
  const from = carrying.indexOf('Z3cx') + 'Z3cx'.length;
  for (let length = from; length < carrying.length; length++) {
    const cut = carrying.slice(0, length);
    // As droid 0.215 and Roo Code do it.
    for (const id of [cut, `${cut}_0`, `${cut}_1a2b3c4d`]) {
      const { id: bare, tokens } = cutId(id);
      assert.equal(bare, 'toolu_1');
      // Of what stood behind the first token, nothing may be left to tell of it.
      assert.deepEqual(tokens, tokens.length === 0 ? [] : [signed], id);
    }
  }
  const [at, inside] = [carrying.length - 20, carrying.length - 8];
  t.strictSame(cutId(carrying.slice(0, at) + carrying.slice(inside)).tokens, [], 'letters are missing');
  const dotted =
    carryInId('c', [tagSignature({ protocol: 'chat', model: 'm', value: '~~~>>>', redacted: true })]) ?? '';
  t.match(dotted, '-');
  t.strictSame(cutId(dotted.replaceAll('-', '')).tokens, [], 'as llxprt-code takes them out');
});

test('what a client has left of a token is no signature of another vendor', async (t) => {
  const ofGoogle = { protocol: 'generateContent', model: 'gemini-3', redacted: false } as const;
  const token = tagSignature({ ...ofGoogle, value: `${'Q'.repeat(200)}==` });
  const whole = carryInId('call_abcdef12', [token]) ?? '';
  const tokensOfCut = (id: string): readonly string[] => {
    const { tokens } = cutId(id);
    // What stands behind a whole token may be nothing of another.
    return id.startsWith(whole) && tokens.length === 1 && tokens[0] === token ? [] : tokens;
  };
  for (const tokens of [[token], [token, signed]]) {
    const carrying = carryInId('call_abcdef12', tokens) ?? '';
    for (let length = 1; length < carrying.length; length++) {
      const cut = carrying.slice(0, length);
      for (const id of [cut, `${cut}_0`, `${cut}_1a2b3c4d`]) assert.deepEqual(tokensOfCut(id), [], id);
    }
  }
  const carrying = carryInId('call_abcdef12', [token]) ?? '';
  const from = carrying.indexOf('Z3cx');
  for (let at = from; at < from + 20; at++) {
    const [before, letter, behind] = [carrying.slice(0, at), carrying[at], carrying.slice(at + 1)];
    for (const other of ['A', 'b', '9', '_'])
      if (other !== letter) t.strictSame(cutId(before + other + behind).tokens, [], `${at} ${other}`);
    for (const lost of [0, 1, 2, 3, 4]) t.strictSame(cutId(before + behind.slice(lost)).tokens, [], `${at}`);
  }
});

test('tokens that earlier versions put into ids are read', async (t) => {
  const carrying = `toolu_1__thought__${Buffer.from(signed).toString('base64url')}`;
  t.strictSame(cutId(carrying), { id: 'toolu_1', tokens: [signed] });
});

test('the signature that another gateway put into an id is a generateContent upstream’s own', async (t) => {
  const { id, tokens } = cutId('call_1__thought__U0lHbmF0dXJl+/A=');
  t.equal(id, 'call_1');
  t.match(untagSignature(tokens[0] ?? null), {
    protocol: 'generateContent',
    value: 'U0lHbmF0dXJl+/A=',
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
