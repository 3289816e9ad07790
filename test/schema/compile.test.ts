import { test } from 'tap';
import { Type } from 'typebox';
import { compileSchema } from '../../src/schema/compile.js';

const mixed = {
  own: 'messages',
  foreign: [
    { key: 'input', endpoint: 'POST /v1/responses' },
    { key: 'prompt', endpoint: 'POST /v1/completions' },
  ],
};

test('a body of another endpoint is told where it belongs', (t) => {
  const schema = compileSchema(Type.Object({ messages: Type.Optional(Type.Array(Type.String())) }), mixed);
  t.equal(schema.check({ prompt: 'x', input: 'x' }), false);
  const error = schema.explain({ prompt: 'x', input: 'x' });
  t.match(error, { kind: 'invalid_request_body', status: 400, code: 'invalid_request_body', param: 'input' });
  t.equal(
    error.message,
    "This body looks like one for POST /v1/responses: it has 'input' and no 'messages'. " +
      "Send it there, or send 'messages' here.",
  );
  t.match(schema.explain({ prompt: 'x' }).message, 'POST /v1/completions');
  t.end();
});

test('a body that has its own key may have the others as well', (t) => {
  const schema = compileSchema(Type.Object({ messages: Type.Array(Type.String()) }), mixed);
  t.equal(schema.check({ messages: [], input: 'x' }), true);
  t.match(schema.explain({ messages: 'x', input: 'x' }), { kind: 'invalid_request', param: 'messages' });
  t.equal(schema.check({}), false);
  t.match(schema.explain({}), { kind: 'missing_parameter', param: 'messages' });
  t.equal(schema.check(null), false);
  t.end();
});

test('a schema that could not be explained is refused when it is first used, with the place', (t) => {
  t.throws(() => compileSchema(Type.Object({ a: Type.Array(Type.String({ maxLength: 5 })) })).check(null), {
    message: 'The schema keyword at #/properties/a/items/maxLength has no explanation.',
  });
  t.throws(() => compileSchema(Type.Union([Type.Null(), Type.String({ pattern: 'x' })])).check(null), {
    message: 'The schema keyword at #/anyOf/1/pattern has no explanation.',
  });
  t.end();
});
