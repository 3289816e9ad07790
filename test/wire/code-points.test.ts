import { test } from 'tap';
import { codePoints } from '../../src/wire/code-points.js';
import { fc } from '../support/seed.js';

/** The code points of a JSON string that is given with its quotes. */
function counted(json: string): number {
  const bytes = Buffer.from(json);
  return codePoints(bytes, 1, bytes.length - 1);
}

test('a character is one, however it is written and however many bytes it has', async (t) => {
  for (const [json, expected] of [
    ['""', 0],
    ['"ab c"', 4],
    ['"äé"', 2],
    ['"中文。"', 3],
    ['"😀"', 1],
    ['"\\n\\t\\"\\\\\\/"', 5],
    ['"\\u00e9x"', 2],
    ['"\\ud83d\\ude00x"', 2],
    ['"\\uD83D\\uDE00"', 1],
    ['"\\ud83d"', 1],
    ['"\\ud83dx\\ude00"', 3],
    ['"\\ude00\\ud83d"', 2],
    ['"e\u0301"', 2],
  ] as const)
    t.equal(counted(json), expected, json);
});

test('the count is that of the parsed text', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const json = JSON.stringify(text);
      const escaped = json.replace(
        /[^\0-~]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      return counted(json) === [...text].length && counted(escaped) === [...text].length;
    }),
  );
  t.pass();
});
