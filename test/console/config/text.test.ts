import { test } from 'tap';
import { formatProblem } from '../../../src/config/problem.js';
import { cutAt, linesWith, piecesOf, problemOf, sectionsOf } from '../../../src/console/config/text.js';

test('a config has its sections, with how much is in each', async (t) => {
  const sections = sectionsOf({
    workers: 0,
    upstreams: { main: {}, spare: {} },
    keys: [{ id: 'a' }],
    secret: '•••',
  });
  t.same(
    sections.map(({ name, summary }) => [name, summary]),
    [
      ['workers', '0'],
      ['upstreams', '2 entries'],
      ['keys', '1 entry'],
      ['secret', '"•••"'],
    ],
  );
  t.same(sections[2]?.lines, ['[', '  {', '    "id": "a"', '  }', ']']);
});

test('lines are found by what is in them, whatever its case', async (t) => {
  const [section] = sectionsOf({ upstreams: { Main: { kind: 'chat' }, spare: { kind: 'main' } } });
  if (section === undefined) throw new Error('no section');
  t.same(linesWith(section, 'MAIN'), [1, 5]);
});

test('a line of JSON is told apart into what is what, and is whole', async (t) => {
  const kinds = (line: string) =>
    piecesOf(line)
      .filter(({ kind }) => kind !== 'plain')
      .map(({ kind, text }) => `${kind} ${text}`);
  t.same(kinds('  "baseUrl": "https://a.example/v1?x=1",'), [
    'name "baseUrl"',
    'text "https://a.example/v1?x=1"',
  ]);
  t.same(kinds('  "a \\" : b": -1.5e3,'), ['name "a \\" : b"', 'number -1.5e3']);
  t.same(kinds('  "verify": true'), ['name "verify"', 'word true']);
  t.same(kinds('  "apiKeys": ["•••"]'), ['name "apiKeys"', 'secret "•••"']);
  for (const line of ['{', '  "a": [1, null, "x: 1"], ', '', '}']) {
    t.equal(
      piecesOf(line)
        .map(({ text }) => text)
        .join(''),
      line,
    );
  }
});

test('a text is cut where another one is in it', async (t) => {
  t.same(cutAt('simMainMAIN.', 'main'), ['sim', 'Main', '', 'MAIN', '.']);
  t.same(cutAt('abc', ''), ['abc']);
  t.same(cutAt('abc', 'x'), ['abc']);
  t.equal(cutAt('İİ main', 'main').join(''), 'İİ main', 'also where lower case is longer');
});

test('a problem of a config has its path and its message', async (t) => {
  for (const path of ['keys[2].groups[0]', 'models["gpt 4: x"].targets', '$schema', 'a["\\"]: "]']) {
    const problem = { path, message: 'there is none: use another' };
    t.same(problemOf(formatProblem(problem)), problem, path);
  }
  const whole = '/etc/gateway.json cannot be read (ENOENT)';
  t.same(problemOf(whole), { path: '', message: whole });
});
