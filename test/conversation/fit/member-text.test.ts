import { test } from 'tap';
import { MemberText, memberOf } from '../../../src/conversation/fit/member-reader.js';
import { fc } from '../../support/seed.js';

/** @returns what comes out for the pieces of a text */
function read(pieces: readonly string[]): string {
  const reader = new MemberText('input');
  return pieces.map((piece) => reader.add(piece)).join('') + reader.end();
}

/** Cuts a text at the places that are named. */
function cut(text: string, at: readonly number[]): string[] {
  const places = [...at.map((place) => place % (text.length + 1)), 0, text.length].sort((a, b) => a - b);
  return places.slice(1).map((end, index) => text.slice(places[index], end));
}

test('a text comes out as it went in, however its JSON is spelled and cut', async () => {
  const ascii = (json: string) =>
    json.replace(/[\u007f-\uffff]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.array(fc.nat(200)),
      fc.boolean(),
      fc.constantFrom('', ' ', '\n\t'),
      (text, places, isAscii, space) => {
        const json = `${space}{${space}"input"${space}:${space}${JSON.stringify(text)}${space}}`;
        return read(cut(isAscii ? ascii(json) : json, places)) === text;
      },
    ),
  );
});

test('each piece is given out as soon as it is known', async (t) => {
  const reader = new MemberText('input');
  t.equal(reader.add('{"input":"ls'), 'ls');
  t.equal(reader.add(' -l\\'), ' -l');
  t.equal(reader.add('n\\ud83d'), '\n');
  t.equal(reader.add('\\ude00"'), '😀');
  t.equal(reader.add('}'), '');
  t.equal(reader.end(), '');
});

test('what is no object with the member is the text itself', async (t) => {
  for (const text of ['*** Begin Patch', '', '[1]', '{"command":"ls"}', '{"a":{"input":"x"}}', '{ broken'])
    t.equal(read(cut(text, [1, 3])), text);
  t.equal(read(['"just ', 'text"']), '"just text"', 'its beginning has left when its end comes');
  t.equal(read(['{}']), '', 'no arguments');
});

test('the member is found behind others', async (t) => {
  t.equal(read(cut(`{"why":"${'x'.repeat(300)}","input":"ls"}`, [7, 290])), 'ls');
  t.equal(memberOf('{"why":1,"input":"ls"}', 'input'), 'ls');
});

test('what never becomes the member is not kept without end', async (t) => {
  const reader = new MemberText('input');
  let given = reader.add('{"other":"');
  for (let i = 0; i < 20; i++) given += reader.add('x'.repeat(100_000));
  t.ok(given.length > 1_000_000);
});
