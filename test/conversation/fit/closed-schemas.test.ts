import { test } from 'tap';
import { fitClosedSchemas } from '../../../src/conversation/fit/closed-schemas.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const rules = { ...anything, closedSchemas: true };
const withSchema = (schema: JsonObject): ConversationRequest => ({
  ...plain,
  format: { kind: 'schema', name: null, description: null, schema, strict: null },
});
const closed = (schema: JsonObject, leftOut = new LeftOut()) => {
  const { format } = fittedBy(fitClosedSchemas, withSchema(schema), rules, target, leftOut).request;
  return format?.kind === 'schema' ? format.schema : null;
};
const open = { type: 'object', properties: {} };
const shut = { ...open, additionalProperties: false };

test('each object in a schema says that it has no other members', async (t) => {
  t.strictSame(
    closed({
      type: ['object', 'null'],
      properties: { a: open, b: { type: 'array', items: open }, c: { anyOf: [open, { type: 'null' }] } },
      $defs: { d: { allOf: [{ $ref: '#/$defs/e' }, open] }, e: { properties: { type: { type: 'string' } } } },
      default: { type: 'object', properties: {} },
    }),
    {
      type: ['object', 'null'],
      properties: { a: shut, b: { type: 'array', items: shut }, c: { anyOf: [shut, { type: 'null' }] } },
      $defs: {
        d: { allOf: [{ $ref: '#/$defs/e' }, shut] },
        e: { properties: { type: { type: 'string' } }, additionalProperties: false },
      },
      default: { type: 'object', properties: {} },
      additionalProperties: false,
    },
  );
});

test('where a schema allowed other members, that is said to be left out', async (t) => {
  const leftOut = new LeftOut();
  t.strictSame(closed({ ...open, additionalProperties: { type: 'string' } }, leftOut), shut);
  t.strictSame(leftOut.names, ['additionalProperties']);
});

test('requests without such a schema stay what they are', async (t) => {
  const given = withSchema(open);
  t.equal(fittedBy(fitClosedSchemas, given, anything, target, new LeftOut()).request, given);
  t.equal(fittedBy(fitClosedSchemas, plain, rules, target, new LeftOut()).request, plain);
});

test('a member that a client calls __proto__ stays what it is', async (t) => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{}},"__proto__":{"a":1}}',
  ) as JsonObject;
  t.equal(
    JSON.stringify(closed(schema)),
    `${JSON.stringify(schema).slice(0, -1)},"additionalProperties":false}`,
  );
});
