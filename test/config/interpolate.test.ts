import { test } from 'tap';
import { interpolate } from '../../src/config/load.js';

const environment = { KEY: 'secret', EMPTY: '', NESTED: '$' + '{KEY}' };
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
      message: 'a reference to the environment is not complete (a plain "$' + '{" is written "$$' + '{")',
    },
    {
      path: 'odd',
      message: 'a reference to the environment is not complete (a plain "$' + '{" is written "$$' + '{")',
    },
  ]);
  t.end();
});
