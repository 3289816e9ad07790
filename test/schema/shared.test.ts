import { test } from 'tap';
import { Type } from 'typebox';
import { withShared } from '../../src/schema/compile.js';
import { asSchema } from '../../src/schema/node.js';
import { compileValidator } from '../../src/schema/validator.js';

const part = Type.Object({ text: Type.String(), of: Type.Optional(Type.Object({ name: Type.String() })) });
const schema = Type.Object({
  first: Type.Union([Type.Array(part, { minItems: 1 }), part]),
  more: Type.Optional(Type.Array(Type.Object({ part }))),
  names: Type.Unsafe<object>({ type: 'object', additionalProperties: part }),
});

test('an object that stands at several places is defined once', async (t) => {
  const shared = JSON.parse(JSON.stringify(withShared(asSchema(schema))));
  const $ref = '#/$defs/shared0';
  t.same(shared.$defs, { shared0: JSON.parse(JSON.stringify(part)) });
  t.same(shared.properties.first.anyOf, [{ type: 'array', minItems: 1, items: { $ref } }, { $ref }]);
  t.same(shared.properties.more.items.properties, { part: { $ref } });
  t.same(shared.properties.names.additionalProperties, { $ref });
});

test('a check of the one says what a check of the other says', async (t) => {
  const [plain, shared] = [compileValidator(schema), compileValidator(withShared(asSchema(schema)))];
  const [good, bad] = [
    { text: 'a', of: { name: 'b' } },
    { text: 'a', of: { name: 1 } },
  ];
  for (const [value, isRight] of [
    [{ first: [good], names: {} }, true],
    [{ first: good, more: [{ part: good }], names: { a: good } }, true],
    [{ first: [], names: {} }, false],
    [{ first: [good, bad], names: {} }, false],
    [{ first: bad, names: {} }, false],
    [{ first: good, more: [{ part: bad }], names: {} }, false],
    [{ first: good, names: { a: good, b: bad } }, false],
    [{ first: good }, false],
  ] as const) {
    t.equal(shared.Check(value), isRight, JSON.stringify(value));
    t.equal(plain.Check(value), isRight);
  }
});
