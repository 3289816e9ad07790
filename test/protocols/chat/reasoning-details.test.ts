import { test } from 'tap';
import { mostCarried, opaqueIn } from '../../../src/conversation/unsigned-reasoning.js';
import { ReasoningDetails } from '../../../src/protocols/chat/reasoning-details.js';

/** What a token for these lists, which arrive one after the other, gives back. */
function returned(...lists: readonly unknown[]): unknown {
  const details = new ReasoningDetails();
  for (const reasoning_details of lists) details.add({ reasoning_details });
  const token = details.takeToken('m');
  if (token === null) return null;
  return JSON.parse(
    opaqueIn('reasoning_details', { kind: 'reasoning', text: '', signature: token }, 'm') ?? '',
  );
}

const text = (words: string, more = {}) => ({ type: 'reasoning.text', text: words, index: 0, ...more });
const sealed = { type: 'reasoning.encrypted', data: 'U0lH', id: 'c1', index: 0 };

test('pieces of one text are one, with the signature that comes last', async (t) => {
  t.same(
    returned([text('a', { signature: null })], [text('b')], [text('', { signature: 'S', format: 'x' })]),
    [text('ab', { signature: 'S', format: 'x' })],
  );
  const other = { ...sealed, data: 'T1RIRVI=' };
  t.same(returned([text('a'), sealed], [other]), [text('a'), sealed, other], 'encrypted ones are whole');
  t.same(returned([text('a'), text('b', { index: 1 }), sealed]), [
    text('a'),
    text('b', { index: 1 }),
    sealed,
  ]);
});

test('long reasoning is carried however small its pieces are', async (t) => {
  const pieces = Array.from({ length: 20_000 }, () => [text('ab ')]);
  t.same(returned(...pieces, [text('', { signature: 'S' })]), [
    text('ab '.repeat(20_000), { signature: 'S' }),
  ]);
});

test('nothing is carried that the text of the reasoning says, or that is no list of objects', async (t) => {
  t.equal(returned([text('a')]), null);
  t.equal(returned([]), null);
  t.equal(returned(null, 'x', [null, 1]), null);
  t.equal(returned([{ ...sealed, data: 'x'.repeat(mostCarried) }]), null, 'nor what is too long');
});

test('what the end of a stream repeats is carried once', async (t) => {
  const signed = text('a', { signature: 'S' });
  t.same(returned([signed, sealed], [signed], [sealed]), [signed, sealed]);
  const details = new ReasoningDetails();
  details.add({ reasoning_details: [text('a'), text('', { signature: 'S' }), sealed] });
  t.not(details.takeToken('m'), null);
  details.add({ reasoning_details: [signed, sealed] });
  t.equal(details.takeToken('m'), null);
});

test('what has the same signature or data, but is no repeat, is carried', async (t) => {
  const piece = (words: string) => text(words, { signature: 'S' });
  t.same(returned([piece('a')], [piece('b')], [piece('c')]), [piece('abc')]);
  t.same(returned([piece('a')], [piece('b')], [piece('ab')]), [piece('ab')], 'all of it is a repeat');
  t.same(returned([text('a', { signature: 'S', index: 1 }), piece('a')]), [
    text('a', { signature: 'S', index: 1 }),
    piece('a'),
  ]);
  const others = [sealed, { ...sealed, id: 'c2' }, { ...sealed, index: 1 }, { ...sealed, id: null }];
  t.same(returned(others, others), others);
  const empty = [
    { ...sealed, data: null },
    { ...sealed, data: null, id: 'c2' },
  ];
  t.same(returned(empty), empty);
  t.same(returned([empty[0], empty[0]]), [empty[0], empty[0]]);
});

test('a text is carried with a signature that comes after the answer has gone on', async (t) => {
  const details = new ReasoningDetails();
  details.add({ reasoning_details: [text('a')] });
  t.equal(details.takeToken('m'), null);
  details.add({ reasoning_details: [text('', { signature: 'S' })] });
  const token = details.takeToken('m');
  t.same(
    JSON.parse(opaqueIn('reasoning_details', { kind: 'reasoning', text: '', signature: token }, 'm') ?? ''),
    [text('a', { signature: 'S' })],
  );
});

test('a token is taken once', async (t) => {
  const details = new ReasoningDetails();
  details.add({ reasoning_details: [sealed] });
  t.equal(details.isEmpty, false);
  t.not(details.takeToken('m'), null);
  t.equal(details.isEmpty, true);
  t.equal(details.takeToken('m'), null);
});
