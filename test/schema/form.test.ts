import { test } from 'tap';
import { Type } from 'typebox';
import { checkForm, checkFormStart, compileForm } from '../../src/schema/form.js';

const schema = compileForm({
  files: ['file'],
  fields: Type.Object({
    model: Type.String({ minLength: 1 }),
    stream: Type.Optional(Type.Boolean()),
    format: Type.Optional(Type.Enum(['a', 'b'])),
    tags: Type.Optional(Type.Array(Type.String())),
  }),
});

type Pair = readonly [name: string, value: string];
const fieldsOf = (pairs: readonly Pair[]) => pairs.map(([name, value]) => ({ name, value }));
const file = [{ name: 'file', filename: 'a' }];
const read = (...pairs: readonly Pair[]) => checkForm(schema, fieldsOf([['model', 'm'], ...pairs]), file);

test('texts become what the schema has in their place', async (t) => {
  t.strictSame(read(['stream', 'true'], ['format', 'b']), { model: 'm', stream: true, format: 'b' });
  t.strictSame(read(['stream', 'False']), { model: 'm', stream: false });
  t.strictSame(checkForm(schema, fieldsOf([['model', '12']]), file), { model: '12' }, 'a text stays one');
});

test('a list is made of brackets, of an array in the schema, and of unknown names that repeat', async (t) => {
  t.strictSame(read(['tags[]', 'x']), { model: 'm', tags: ['x'] });
  t.strictSame(read(['tags', 'x']), { model: 'm', tags: ['x'] });
  t.strictSame(read(['tags', 'x'], ['format', 'a'], ['tags[]', '2']), {
    model: 'm',
    tags: ['x', '2'],
    format: 'a',
  });
  t.strictSame(read(['new', 'x'], ['news', '1'], ['news', '2'], ['more[]', '1'], ['[]', ''], ['a[b]', '']), {
    model: 'm',
    new: 'x',
    news: ['1', '2'],
    more: ['1'],
    '[]': '',
    'a[b]': '',
  });
});

test('a name that every object inherits is one like any other', async (t) => {
  const values = read(['__proto__', 'x'], ['constructor', 'y'], ['constructor', 'z']);
  t.strictSame(Object.entries(values), [
    ['model', 'm'],
    ['__proto__', 'x'],
    ['constructor', ['y', 'z']],
  ]);
});

/** What a call throws, or null. */
function thrown(work: () => unknown): unknown {
  try {
    work();
    return null;
  } catch (error) {
    return error;
  }
}

const refused: readonly (readonly [pairs: readonly Pair[], param: string, message: string])[] = [
  [[['stream', '1']], 'stream', 'expected a boolean'],
  [[['format', 'c']], 'format', 'expected "a" or "b", found "c"'],
  [[['stream', '']], 'stream', 'found an empty string'],
  [[['format[]', 'a']], 'format', 'found an array of 1 item'],
  [[['model', 'm']], 'model', "The part 'model' of the form comes more than once: send it once."],
  [
    [
      ['format', 'a'],
      ['format[]', 'a'],
    ],
    'format',
    'more than once',
  ],
  [[['file', 'abc']], 'file', "The part 'file' of the form has no filename: send it as a file"],
];

for (const [pairs, param, message] of refused) {
  test(`refused: ${pairs.join(' ')}`, async (t) => {
    try {
      read(...pairs);
      t.fail('was taken');
    } catch (error) {
      t.match(error, { status: 400, param });
      t.ok((error as Error).message.includes(message), (error as Error).message);
    }
  });
}

test('what is missing is refused, but not of a form that is still coming', async (t) => {
  const model = fieldsOf([['model', 'm']]);
  t.match(
    thrown(() => checkForm(schema, model, [])),
    {
      kind: 'missing_parameter',
      param: 'file',
      message: "Missing required parameter 'file': expected a file.",
    },
  );
  t.match(
    thrown(() => checkForm(schema, [], file)),
    { kind: 'missing_parameter', param: 'model' },
  );
  t.strictSame(checkFormStart(schema, [], []), {});
  t.strictSame(
    checkFormStart(
      schema,
      fieldsOf([
        ['format', 'a'],
        ['stream', 'true'],
      ]),
      [],
    ),
    { format: 'a', stream: true },
  );
  t.match(
    thrown(() => checkFormStart(schema, fieldsOf([['stream', 'x']]), [])),
    { param: 'stream' },
  );
  t.match(
    thrown(() => checkFormStart(schema, [...model, ...model], [])),
    { param: 'model' },
  );
  t.match(
    thrown(() => checkFormStart(schema, fieldsOf([['file', 'x']]), [])),
    { param: 'file' },
  );
});

test('a field that is a file, and a second file, are refused', async (t) => {
  const fields = fieldsOf([['model', 'm']]);
  t.match(
    thrown(() => checkForm(schema, fields, [...file, { name: 'format' }])),
    {
      status: 400,
      param: 'format',
      message: "The part 'format' of the form is sent as a file: send it as a field, without a filename.",
    },
  );
  t.match(
    thrown(() => checkForm(schema, fields, [...file, ...file])),
    { status: 400, param: 'file' },
  );
  t.strictSame(checkForm(schema, fields, [...file, { name: 'other' }, { name: 'other' }]), { model: 'm' });
});
