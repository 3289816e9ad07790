import { test } from 'tap';
import type { AnswerPart, StreamEvent } from '../../../src/conversation/answer.js';
import { fitOutputRoot } from '../../../src/conversation/fit/answer-format.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plain } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const rules = { ...anything, outputRoot: 'object' as const };
const withSchema = (schema: JsonObject, bare?: boolean): ConversationRequest => ({
  ...plain,
  format: { kind: 'schema', name: null, description: null, schema, strict: null, bare },
});
const fit = (schema: JsonObject, bare?: boolean) => fittedBy(fitOutputRoot, withSchema(schema, bare), rules);
const list = { type: 'array', items: { type: 'string' } };
const around = (value: JsonObject) => ({
  type: 'object',
  properties: { value },
  required: ['value'],
  additionalProperties: false,
});

test('a schema that is not of an object is asked for as the member of one', async (t) => {
  for (const schema of [list, { enum: ['a'] }, { anyOf: [{ type: 'object' }] }, { type: ['object', 'null'] }])
    t.match(fit(schema).request.format, { schema: around(schema) });
  for (const schema of [{ type: 'object' }, {}, { properties: {} }]) t.equal(fit(schema).restorer, null);
  const given = withSchema(list);
  t.strictSame(fittedBy(fitOutputRoot, given, anything), { request: given, restorer: null });
});

test('references still lead where they did', async (t) => {
  const schema = {
    type: 'array',
    items: { anyOf: [{ $ref: '#' }, { $ref: '#/$defs/a' }, { $ref: '#/items/anyOf/0' }] },
    $defs: { a: { type: 'array', items: { $ref: '#/$defs/a' } } },
  };
  t.strictSame(fit(schema).request.format, {
    ...withSchema({}).format,
    schema: {
      ...around({
        type: 'array',
        items: {
          anyOf: [
            { $ref: '#/properties/value' },
            { $ref: '#/$defs/a' },
            { $ref: '#/properties/value/items/anyOf/0' },
          ],
        },
      }),
      $defs: schema.$defs,
    },
  });
});

const text = (words: string, choice = 0) => ({ kind: 'text', choice, text: words }) as const;

test('the value is taken out of a streamed answer', async (t) => {
  const { restorer } = fit(list);
  t.ok(restorer?.changesText);
  const finish = { kind: 'finish', choice: 0, reason: 'stop', stopSequence: null } as const;
  const out: StreamEvent[] = [];
  for (const event of [
    text('{"val'),
    text('ue":["a"'),
    text('{"value":[', 1),
    text(',"b"]}'),
    finish,
    text(']}', 1),
  ])
    restorer?.event(event, out);
  t.strictSame(out, [text('["a"'), text('[', 1), text(',"b"]'), finish, text(']', 1)]);
});

test('the value is taken out of a whole answer, a word without its quotes', async (t) => {
  const said = (words: string): AnswerPart => ({ kind: 'text', text: words });
  const taken = (bare: boolean, ...parts: AnswerPart[]) =>
    fit({ type: 'string', enum: ['red'] }, bare).restorer?.answer({
      choices: [{ parts, finish: 'stop', stopSequence: null }],
      usage: null,
    }).choices[0]?.parts;
  t.strictSame(taken(false, said('{"value":"red"}')), [said('"red"')]);
  t.strictSame(taken(true, said('{"val'), said('ue":"red"}')), [said(''), said('red')]);
  t.strictSame(taken(true, said('red')), [said('red')], 'models do not always keep to a form');
});
