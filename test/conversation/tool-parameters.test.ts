import { test } from 'tap';
import { LeftOut } from '../../src/conversation/left-out.js';
import { toolParameters } from '../../src/conversation/tool-calls.js';
import { chatCodec } from '../../src/protocols/chat/index.js';
import { generateContentCodec } from '../../src/protocols/generate-content/index.js';
import { messagesCodec } from '../../src/protocols/messages/index.js';
import { responsesCodec } from '../../src/protocols/responses/index.js';
import { plain, target } from '../protocols/messages/samples.js';
import { at } from '../support/json.js';

const properties = { city: { type: 'string' } };

test('a schema of arguments says that it is of an object, and what that has', async (t) => {
  t.strictSame(toolParameters(null), { type: 'object', properties: {} });
  t.strictSame(toolParameters({}), { type: 'object', properties: {} });
  t.strictSame(toolParameters({ properties }), { type: 'object', properties });
  t.strictSame(toolParameters({ type: 'object' }), { type: 'object', properties: {} });
  const reference = { $ref: '#/$defs/A', $defs: { A: { type: 'object', properties } } };
  t.strictSame(toolParameters(reference), { type: 'object', ...reference });
  for (const whole of [{ type: 'object', properties }, { type: 'string' }])
    t.equal(toolParameters(whole), whole);
});

test('every protocol writes it so', async (t) => {
  const tools = [{ name: 'f', description: null, parameters: { properties }, strict: null }];
  const places = [
    [chatCodec, ['tools', 0, 'function', 'parameters']],
    [responsesCodec, ['tools', 0, 'parameters']],
    [messagesCodec, ['tools', 0, 'input_schema']],
    [generateContentCodec, ['tools', 0, 'functionDeclarations', 0, 'parametersJsonSchema']],
  ] as const;
  for (const [codec, path] of places) {
    const body: unknown = JSON.parse(codec.encodeRequest({ ...plain, tools }, target, new LeftOut()));
    t.strictSame(at(body, ...path), { type: 'object', properties });
  }
});
