import { test } from 'tap';
import { Utf8Offsets } from '../../src/wire/utf8-offsets.js';

const text = 'aé€😀b中c';

test('places in units are places in bytes, at the beginning of every character', async (t) => {
  const offsets = new Utf8Offsets();
  offsets.add(text);
  t.equal(offsets.byteLength, Buffer.byteLength(text));
  let unit = 0;
  for (const character of text) {
    const byte = Buffer.byteLength(text.slice(0, unit));
    t.equal(offsets.toByte(unit), byte, character);
    t.equal(offsets.toUnit(byte), unit, character);
    unit += character.length;
  }
  t.equal(offsets.toByte(unit), Buffer.byteLength(text));
});

test('a text may come in pieces, cut anywhere', async (t) => {
  for (let cut = 0; cut <= text.length; cut++) {
    const offsets = new Utf8Offsets();
    offsets.add(text.slice(0, cut));
    offsets.add(text.slice(cut));
    t.equal(offsets.toByte(5), Buffer.byteLength(text.slice(0, 5)));
    t.equal(offsets.toUnit(Buffer.byteLength(text.slice(0, 6))), 6);
  }
});

test('a place before or behind the text is its beginning or its end', async (t) => {
  const offsets = new Utf8Offsets();
  offsets.add('né');
  t.equal(offsets.toByte(-1), 0);
  t.equal(offsets.toUnit(-1), 0);
  t.equal(offsets.toByte(100), 3);
  t.equal(offsets.toUnit(100), 2);
  t.equal(new Utf8Offsets().toUnit(5), 0);
});
