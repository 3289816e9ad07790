import { test } from 'tap';
import { parseJson } from '../../src/config/load.js';
import { cases, fc } from '../support/seed.js';

test('a syntax error names its line and column, and no text of the file', (t) => {
  const cases: [string, string][] = [
    ['', 'the file is empty'],
    ['# The gateway\nlisten:\n  port: 80', 'line 1, column 1: expected "{": this is a file of JSON'],
    ['/* no end', 'line 1, column 1: this comment does not end'],
    ['{\n  "a": 1, // one\n}', 'line 3, column 1: no comma may stand before this "}"'],
    ['{"a": [1,\n]}', 'line 2, column 1: no comma may stand before this "]"'],
    ['[1, {"a": ]}]', 'line 1, column 11: expected a value'],
    ['{"a": }', 'line 1, column 7: expected a value'],
    ['{a: 1}', 'line 1, column 2: this word is no value'],
    ["{'a': 1}", 'line 1, column 2: names and strings stand in plain double quotes (")'],
    ['{“a”: 1}', 'line 1, column 2: names and strings stand in plain double quotes (")'],
    ['{"a":\u00a01}', 'line 1, column 6: this character looks like a space and is none (write a plain one)'],
    ['{\n  "a": sk-secret\n}', 'line 2, column 8: this word is no value'],
    ['{"a": 1\n "b": 2}', 'line 2, column 2: expected ","'],
    ['[1 2]', 'line 1, column 4: expected ","'],
    ['{"a" 1}', 'line 1, column 6: expected ":"'],
    ['{"a": "x', 'line 1, column 7: this string does not end in its line'],
    ['["a\nb"]', 'line 1, column 2: this string does not end in its line'],
    ['["\\q"]', 'line 1, column 2: this escape is not allowed in a string'],
    ['{} x', 'line 1, column 4: this word is no value'],
    ['{} 1', 'line 1, column 4: expected the end of the file'],
    ['[01]', 'line 1, column 3: expected ","'],
    ['['.repeat(200), 'line 1, column 101: nested deeper than 100 levels'],
    ['[1, /* no end', 'line 1, column 5: this comment does not end'],
  ];
  for (const [text, message] of cases) {
    t.strictSame(parseJson(text), { value: undefined, problems: [{ path: '', message }] }, text.slice(0, 30));
  }
  t.end();
});

test('a name that is given twice is found, also when it is spelled with escapes', (t) => {
  const { problems } = parseJson('{"a": {"b": 1,\n "\\u0062": 2}, "c": [{"d": 1}, {"d": 2, "d": 3}]}');
  t.strictSame(problems, [
    { path: 'a.b', message: 'this name is given twice (again at line 2, column 2)' },
    { path: 'c[1].d', message: 'this name is given twice (again at line 2, column 41)' },
  ]);
  t.end();
});

test('a byte order mark is passed over', (t) => {
  t.strictSame(parseJson('\uFEFF{"a": 1}'), { value: { a: 1 }, problems: [] });
  t.end();
});

test('comments of either kind are passed over', (t) => {
  const text = '// The file.\n{\n  /* one */ "a": 1, // two\n  "b": ["// no comment"]\n}\n// end';
  t.strictSame(parseJson(text), { value: { a: 1, b: ['// no comment'] }, problems: [] });
  t.end();
});

test('a name that objects have of themselves is a member like any other', (t) => {
  const { value } = parseJson('{"__proto__": {"admin": true}, "constructor": 1}');
  t.strictSame(Object.keys(value as object), ['__proto__', 'constructor']);
  t.equal((value as { admin?: boolean }).admin, undefined);
  t.end();
});

test('what JSON.parse reads is read, with the same value', (t) => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(0, 1, 2), (text, indent) => {
      const value: unknown = JSON.parse(text);
      t.strictSame(parseJson(JSON.stringify(value, null, indent)).value, value);
    }),
    { numRuns: 200 },
  );
  t.end();
});

test('what JSON.parse refuses is refused, wherever a text is damaged', (t) => {
  const damage = fc.tuple(
    fc.json({ maxDepth: 3 }),
    fc.nat(),
    fc.constantFrom('', ',', '"', '{', '}', ']', '-', '0', '.', 'e', '\\', ':', '\n', 'true'),
  );
  fc.assert(
    fc.property(damage, ([text, at, insert]) => {
      const place = at % (text.length + 1);
      const damaged = text.slice(0, place) + insert + text.slice(insert === '' ? place + 1 : place);
      // What follows two of them would be a comment.
      fc.pre(!damaged.includes('/'));
      let valid = true;
      try {
        JSON.parse(damaged);
      } catch {
        valid = false;
      }
      return (parseJson(damaged).value !== undefined) === valid;
    }),
    { numRuns: cases(3000) },
  );
  t.end();
});
