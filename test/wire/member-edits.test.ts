import assert from 'node:assert/strict';
import { test } from 'tap';
import {
  addRule,
  clash,
  createEdits,
  editAt,
  editMembers,
  type MemberRule,
  type ObjectEdits,
} from '../../src/wire/member-edits.js';
import { refusalOf } from '../support/refusal.js';
import { cases, fc } from '../support/seed.js';
import { anyJson, anyText, noise, writeJson } from './json-text.js';

const same = (name: string): string => name;

function editsOf(rules: readonly MemberRule[], isAdded = true): ObjectEdits {
  const edits = createEdits();
  for (const rule of rules) addRule(edits, rule, same, isAdded);
  return edits;
}

function edited(text: string, ...rules: MemberRule[]): string {
  return Buffer.concat(editMembers(Buffer.from(text), editsOf(rules))).toString();
}

const drop = (...path: string[]): MemberRule => ({ kind: 'drop', path });
const set = (json: string, ...path: string[]): MemberRule => ({ kind: 'set', path, json });
const rename = (to: string, ...path: string[]): MemberRule => ({ kind: 'rename', path, to });
const clamp = (min: number | null, max: number | null, ...path: string[]): MemberRule => ({
  kind: 'clamp',
  path,
  min,
  max,
});

test('members are left out with one comma each, wherever they stand', async (t) => {
  const cases: [string, string][] = [
    ['{"a":1}', '{}'],
    ['{ "a" : 1 }', '{  }'],
    ['{"a":1,"x":2}', '{"x":2}'],
    ['{"x":2 , "a":1 }', '{"x":2 }'],
    ['{"x":1,"a":[1,{"a":2}],"y":3}', '{"x":1,"y":3}'],
    ['{"a":1,"b":2}', '{}'],
    ['{"a":1,"b":2,"x":3}', '{"x":3}'],
    ['{"x":3,"a":1,"b":2}', '{"x":3}'],
    ['{"a":1,"x":3,"b":2,"y":4,"a":5}', '{"x":3,"y":4}'],
    ['{"\\u0061":1,"x":3}', '{"x":3}'],
    ['{"x":{"a":1},"A":2,"a ":3}', '{"x":{"a":1},"A":2,"a ":3}'],
  ];
  for (const [before, after] of cases) t.equal(edited(before, drop('a'), drop('b')), after, before);
});

test('a value is set where it is, or becomes the first member', async (t) => {
  t.equal(edited('{"x":1, "a" : [1,2] }', set('"b"', 'a')), '{"x":1, "a" : "b" }');
  t.equal(edited('{ "x":1}', set('"b"', 'a')), '{"a":"b", "x":1}');
  t.equal(edited('{ }', set('1', 'a'), set('2', 'b')), '{"a":1,"b":2 }');
  t.equal(edited('{"x":1}', set('2', 'a'), drop('x')), '{"a":2}');
  t.equal(edited('{"a":1,"a":2}', set('3', 'a')), '{"a":3,"a":3}', 'whichever of the two a parser takes');
});

test('objects on the way to a member are looked into, made where they are missing, and never made for nothing', async (t) => {
  const deep = set('1', 'a', 'b', 'c');
  t.equal(edited('{"x":1}', deep), '{"a":{"b":{"c":1}},"x":1}');
  t.equal(edited('{"a":{},"x":1}', deep), '{"a":{"b":{"c":1}},"x":1}');
  t.equal(edited('{"a":{ "y":2,"b":{"c":0}}}', deep), '{"a":{ "y":2,"b":{"c":1}}}');
  t.equal(edited('{"a":null}', deep), '{"a":{"b":{"c":1}}}');
  t.equal(edited('{"a":"text"}', deep), '{"a":"text"}', 'what is no object has no members');
  t.equal(edited('{"x":1}', drop('a', 'b'), clamp(1, 2, 'c', 'd')), '{"x":1}');
  t.equal(edited('{"a":{"b":1},"b":1}', drop('a', 'b')), '{"a":{},"b":1}');
});

test('a member is renamed, and gives way to one that has the name', async (t) => {
  t.equal(edited('{"a" : 5,"x":1}', rename('b', 'a')), '{"b" : 5,"x":1}');
  t.equal(edited('{"a":5,"b":6}', rename('b', 'a')), '{"b":6}');
  t.equal(edited('{"o":{"a":5}}', rename('b', 'o', 'a')), '{"o":{"b":5}}');
  t.equal(edited('{"a":5}', rename('b', 'a'), clamp(null, 3, 'b')), '{"b":3}', 'the new name is clamped');
  t.equal(edited('{"a":5}', rename('"', 'a')), '{"\\"":5}');
});

test('numbers are kept within bounds, and keep their digits within them', async (t) => {
  const cases: [string, string][] = [
    ['0.5', '0.5'],
    ['1.50', '1.50'],
    ['1e-7', '0.01'],
    ['-3', '0.01'],
    ['1.0', '1.0'],
    ['12345678901234567890', '1.5'],
    ['1e400', '1.5'],
    ['"2"', '"2"'],
    ['null', 'null'],
    ['true', 'true'],
    ['[2]', '[2]'],
  ];
  for (const [before, after] of cases)
    t.equal(edited(`{"t":${before}}`, clamp(0.01, 1.5, 't')), `{"t":${after}}`, before);
  t.equal(edited('{"t":9}', clamp(10, null, 't')), '{"t":10}');
});

test('each object of a list is looked into', async (t) => {
  const edits = createEdits();
  const list = editAt(edits, ['list'], same);
  list.each = createEdits();
  addRule(list.each, drop('a'), same, false);
  const of = (text: string): string => Buffer.concat(editMembers(Buffer.from(text), edits)).toString();
  t.equal(
    of('{"list":[{"a":1,"b":2}, "a" ,[{"a":1}],{"a":3}],"a":4}'),
    '{"list":[{"b":2}, "a" ,[{"a":1}],{}],"a":4}',
  );
  t.equal(of('{"list":[ ]}'), '{"list":[ ]}');
  t.equal(of('{"list":{"a":1}}'), '{"list":{"a":1}}');
});

test('what takes the place of a member gives way to what is there already', async (t) => {
  const edits = createEdits();
  editAt(edits, ['a'], same).become = (json) =>
    json === '0'
      ? null
      : [
          ['b', 'true'],
          ['a', json],
        ];
  const of = (text: string): string => Buffer.concat(editMembers(Buffer.from(text), edits)).toString();
  t.equal(of('{"x":1,"a":2}'), '{"x":1,"b":true,"a":2}');
  t.equal(of('{"b":false,"a":2}'), '{"b":false,"a":2}');
  t.equal(of('{"a":0}'), '{"a":0}');
});

test('a number or word too long to be one is left alone, and can still be left out', async (t) => {
  const long = `"${'x'.repeat(5000)}"`;
  let asked = 0;
  const edits = createEdits();
  editAt(edits, ['a'], same).change = (json) => {
    asked++;
    return json;
  };
  const body = Buffer.from(`{"a":${long}}`);
  t.equal(editMembers(body, edits)[0], body);
  t.equal(asked, 0);
  t.equal(edited(`{"a":${long},"x":1}`, drop('a')), '{"x":1}');
  t.equal(edited(`{"a":${long}}`, rename('b', 'a')), `{"b":${long}}`);
});

test('another spelling of a name is found, and not added again', async (t) => {
  const edits = createEdits();
  const snake = (name: string): string => (name === 'topK' ? 'top_k' : name);
  addRule(edits, set('1', 'config', 'topK'), snake, true);
  const of = (text: string): string => Buffer.concat(editMembers(Buffer.from(text), edits)).toString();
  t.equal(of('{"config":{"top_k":5}}'), '{"config":{"top_k":1}}');
  t.equal(of('{"config":{"topK":5}}'), '{"config":{"topK":1}}');
  t.equal(of('{"config":{}}'), '{"config":{"topK":1}}');
});

test('a body whose structure is not certain is refused', async (t) => {
  for (const text of ['[]', '{"a"}', '{"a":1', '{"a":tru,"x":1}', '{"a":1 "x":2}', '{a:1}', ''])
    t.equal(refusalOf(() => edited(text, drop('a')))?.kind, 'invalid_json', text);
});

const anyObject = fc.dictionary(anyText, anyJson, { maxKeys: 5 });

test('a body without any of the members is passed on as it came', (t) => {
  // No name of `anyText` has an underscore.
  const rules = [drop('_a'), rename('_c', '_b'), clamp(0, 1, '_d'), drop('_e', 'a'), set('1', '_f')];
  fc.assert(
    fc.property(anyObject, noise, (value, whims) => {
      const body = Buffer.from(writeJson(value, whims));
      const pieces = editMembers(body, editsOf(rules, false));
      assert.equal(pieces.length, 1);
      assert.equal(pieces[0], body);
    }),
    { numRuns: cases(1000) },
  );
  t.end();
});

const names = ['a', 'b', 'c', 'd'];
const anyName = fc.constantFrom(...names);
const anyPath = fc.array(anyName, { minLength: 1, maxLength: 3 });
const anyRule: fc.Arbitrary<MemberRule> = fc.oneof(
  anyPath.map((path): MemberRule => ({ kind: 'drop', path })),
  fc
    .tuple(anyPath, anyJson)
    .map(([path, value]): MemberRule => ({ kind: 'set', path, json: JSON.stringify(value) })),
  fc.tuple(anyPath, anyName).map(([path, to]): MemberRule => ({ kind: 'rename', path, to })),
  anyPath.map((path): MemberRule => ({ kind: 'clamp', path, min: -1, max: 1 })),
);

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What rules say, on a value. */
function applied(value: Tree, rules: readonly MemberRule[]): Tree {
  const result = structuredClone(value);
  const order = ['drop', 'rename', 'set', 'clamp', 'keep'];
  for (const rule of rules.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)))
    applyTo(result, rule.path, rule);
  return result;
}

function applyTo(holder: Tree, [name = '', ...rest]: readonly string[], rule: MemberRule): void {
  if (rest.length > 0) {
    if (rule.kind === 'set' && (holder[name] ?? null) === null) holder[name] = {};
    const inner = holder[name];
    if (isTree(inner)) applyTo(inner, rest, rule);
    return;
  }
  if (rule.kind === 'set') holder[name] = JSON.parse(rule.json);
  if (!Object.hasOwn(holder, name)) return;
  const value = holder[name];
  if (rule.kind === 'drop') delete holder[name];
  if (rule.kind === 'clamp' && typeof value === 'number') holder[name] = Math.min(1, Math.max(-1, value));
  if (rule.kind !== 'rename') return;
  delete holder[name];
  if (!Object.hasOwn(holder, rule.to)) holder[rule.to] = value;
}

test('on any body rules that do not clash come to what they say', (t) => {
  const body: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.dictionary(
      anyName,
      fc.oneof(
        { maxDepth: 3, depthSize: 'small' },
        fc.constantFrom<unknown>(null, 5, -5, 0.5, 'x', [1, { a: 1 }]),
        tie('tree'),
      ),
      { maxKeys: 4 },
    ),
  })).tree;
  fc.assert(
    fc.property(body, fc.array(anyRule, { maxLength: 4 }), noise, (value, all, whims) => {
      const rules: MemberRule[] = [];
      for (const rule of all) {
        const isItself = rule.kind === 'rename' && rule.path.at(-1) === rule.to;
        if (!isItself && !rules.some((other) => clash(rule, other))) rules.push(rule);
      }
      const text = writeJson(value, whims);
      const pieces = editMembers(Buffer.from(text), editsOf(rules));
      const result = Buffer.concat(pieces).toString();
      assert.deepEqual(JSON.parse(result), applied(JSON.parse(JSON.stringify(value)), rules));
    }),
    { numRuns: cases(3000) },
  );
  t.end();
});

test('rules clash where they speak of one member, or one looks into what the other changes', async (t) => {
  const cases: [MemberRule, MemberRule, boolean][] = [
    [drop('a'), drop('b'), false],
    [drop('a'), set('1', 'a'), true],
    [drop('a'), clamp(0, 1, 'a', 'b'), true],
    [drop('a', 'c'), clamp(0, 1, 'a', 'b'), false],
    [rename('b', 'a'), clamp(0, 1, 'b'), false],
    [rename('b', 'a'), clamp(0, 1, 'a'), true],
    [rename('b', 'a'), drop('b'), true],
    [rename('b', 'a'), rename('b', 'c'), true],
    [rename('b', 'a'), rename('c', 'b'), true],
    [rename('b', 'x', 'a'), drop('b'), false],
    [{ kind: 'keep', path: ['a'] }, drop('a'), true],
  ];
  for (const [one, other, expected] of cases) {
    t.equal(clash(one, other), expected, `${JSON.stringify(one)} ${JSON.stringify(other)}`);
    t.equal(clash(other, one), expected);
  }
});
