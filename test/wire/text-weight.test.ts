import { test } from 'tap';
import { rawBytes } from '../../src/wire/raw-text.js';
import { rawTextWeight, textWeight } from '../../src/wire/text-weight.js';
import { fc } from '../support/seed.js';

test('a character weighs a quarter of a token, and one of an East Asian script a whole one', async (t) => {
  t.equal(textWeight(''), 0);
  t.equal(textWeight('Hello world!'), 12);
  t.equal(textWeight('Ünï—“©”'), 7);
  for (const text of ['漢字', 'かな', '한글', '，。', 'ＡＢ']) t.equal(textWeight(text), 8, text);
  t.equal(textWeight('a漢b'), 6);
  t.equal(textWeight('😀'), 2);
});

test('a raw text weighs as much as the text that it stands for', async () => {
  const edges = ['\u2fff', '\u3000', '\ud7ff', '\ue000', '\uefff', '\uf000', '\uffff'];
  const text = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...edges)));
  fc.assert(
    fc.property(text, (pieces) => {
      const whole = pieces.join('');
      const raw = rawBytes(JSON.stringify(whole).slice(1, -1));
      // Escapes of six characters are left to the decoder.
      return raw.includes('\\u') || rawTextWeight(raw) === textWeight(whole);
    }),
  );
});
