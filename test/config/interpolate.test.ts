import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import { createConfigFiles } from '../../src/config/files.js';
import { interpolate as interpolateWith, parseConfig } from '../../src/config/load.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const environment = { KEY: 'secret', EMPTY: '', NESTED: '$' + '{KEY}' };
const interpolate = (source: unknown, from: typeof environment) =>
  interpolateWith(source, from, createConfigFiles(tmpdir()));
const reference = (name: string): string => `$\{${name}}`;

test('references are replaced in every string, at any depth and more than once', (t) => {
  const source = {
    a: [`x-${reference('KEY')}-${reference('KEY')}`, 1, null, { b: reference('EMPTY') }],
    c: true,
  };
  const { value, problems, hidden } = interpolate(source, environment);
  t.strictSame(value, { a: ['x-secret-secret', 1, null, { b: '' }], c: true });
  t.strictSame(problems, []);
  t.strictSame([...hidden], ['a[0]', 'a[1].b'].slice(0, 1).concat('a[3].b'));
  t.end();
});

test('a value from the environment is not searched for references again', (t) => {
  t.equal(interpolate(reference('NESTED'), environment).value, reference('KEY'));
  t.end();
});

test('"$$" before a brace stands for the plain text', (t) => {
  t.equal(interpolate(`a $${reference('KEY')} $$ $5`, environment).value, `a ${reference('KEY')} $$ $5`);
  t.end();
});

test('property names are left alone', (t) => {
  t.strictSame(interpolate({ [reference('KEY')]: 1 }, environment).value, { [reference('KEY')]: 1 });
  t.end();
});

test('a name that JavaScript treats in its own way stays an ordinary property', (t) => {
  const { value } = interpolate(JSON.parse('{"__proto__": {"polluted": true}}'), environment);
  t.ok(Object.hasOwn(value as object, '__proto__'));
  t.equal(Reflect.get({}, 'polluted'), undefined);
  t.end();
});

test('each missing variable is a problem with its path, and its text stays', (t) => {
  const source = { keys: [reference('GONE'), reference('toString')], open: '$' + '{', odd: reference('1') };
  const { value, problems } = interpolate(source, environment);
  t.strictSame(value, source);
  t.strictSame(problems, [
    { path: 'keys[0]', message: 'the environment variable GONE is not set' },
    { path: 'keys[1]', message: 'the environment variable toString is not set' },
    {
      path: 'open',
      message:
        'a reference to the environment or a file is not complete (a plain "$' + '{" is written "$$' + '{")',
    },
    {
      path: 'odd',
      message:
        'a reference to the environment or a file is not complete (a plain "$' + '{" is written "$$' + '{")',
    },
  ]);
  t.end();
});

test('a reference to a file is replaced by what it holds, without the end of its last line, as it is each time', (t) => {
  const directory = temporaryFolder(t);
  mkdirSync(join(directory, 'secrets'));
  const path = join(directory, 'secrets', 'key');
  const read = (name: string) => interpolateWith(`<${reference(name)}>`, {}, createConfigFiles(directory));
  for (const [bytes, text] of [
    ['abc\n', 'abc'],
    ['abc\r\n', 'abc'],
    [' a\n\n', ' a\n'],
    ['', ''],
    [`${reference('KEY')} ü`, `${reference('KEY')} ü`],
    ['x'.repeat(65_536), 'x'.repeat(65_536)],
  ] as const) {
    writeFileSync(path, bytes);
    t.strictSame(read('file:secrets/key'), { value: `<${text}>`, problems: [], hidden: new Set(['']) });
    t.equal(read(`file:${path}`).value, `<${text}>`);
  }
  t.end();
});

test('a file that cannot be a secret is a problem at its place, and its text is not shown', (t) => {
  const directory = temporaryFolder(t);
  const at = (name: string) => join(directory, name);
  writeFileSync(at('long'), 'secret'.repeat(20_000));
  writeFileSync(at('binary'), Buffer.from([0xff, 0xfe, 0x00]));
  const files = {
    a: 'file:gone',
    b: `file:${directory}`,
    c: 'file:long',
    d: 'file:binary',
    e: 'file:/dev/zero',
  };
  const source = Object.fromEntries(Object.entries(files).map(([name, path]) => [name, reference(path)]));
  const { value, problems } = interpolateWith(
    { ...source, f: '$' + '{file:}' },
    {},
    createConfigFiles(directory),
  );
  t.strictSame(value, { ...source, f: '$' + '{file:}' });
  t.strictSame(
    problems.map(({ path, message }) => `${path}: ${message}`),
    [
      `a: ${at('gone')} cannot be read (ENOENT)`,
      `b: ${directory} is no file`,
      `c: ${at('long')} has more than 65536 bytes`,
      `d: ${at('binary')} is no UTF-8 text`,
      'e: /dev/zero is no file',
      'f: a reference to the environment or a file is not complete (a plain "$' + '{" is written "$$' + '{")',
    ],
  );
  t.end();
});

test('secrets of files are found from the folder of the config, and are read again each time it is parsed', (t) => {
  const directory = temporaryFolder(t);
  const text = JSON.stringify({
    upstreams: { u: { kind: 'chat', baseUrl: 'https://a.test/v1', apiKeys: [reference('file:key')] } },
    models: {},
    groups: {},
    keys: [],
  });
  const parse = () => parseConfig(text, { environment: {}, directory, created: 1 }).upstreams[0]?.apiKeys;
  for (const secret of ['one', 'two']) {
    writeFileSync(join(directory, 'key'), `${secret}\n`);
    t.strictSame(parse(), [secret]);
  }
  rmSync(join(directory, 'key'));
  t.throws(parse, { message: `upstreams.u.apiKeys[0]: ${join(directory, 'key')} cannot be read (ENOENT)` });
  t.end();
});
