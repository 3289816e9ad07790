import { test } from 'tap';
import { GrowingText } from '../../src/wire/growing-text.js';

test('a text is the sum of its pieces, wherever they were cut', (t) => {
  const whole = 'text é 漢字 🎉 \ud83c " \\ \n \0 '.repeat(2000);
  for (const size of [1, 2, 3, 7, 4095, 4096, 4097, 100_000]) {
    const text = new GrowingText();
    for (let at = 0; at < whole.length; at += size) text.add(whole.slice(at, at + size));
    t.equal(text.length, whole.length, `${size}`);
    t.ok(text.toString() === whole, `${size}`);
  }
  t.equal(new GrowingText().toString(), '');
  t.end();
});
