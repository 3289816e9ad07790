import assert from 'node:assert/strict';
import { test } from 'tap';
import {
  compactRequest,
  passedResponsesRequest,
  responsesRequest,
} from '../../../../src/protocols/responses/request/schema.js';
import { scanBody } from '../../../../src/wire/json-scan.js';
import { parseBody } from '../../../../src/wire/skeleton.js';
import { cases, fc } from '../../../support/seed.js';
import { damage, type Json } from '../../damage.js';
import { agentBody, everything } from '../bodies.js';

const body = (more: object = {}) => ({ model: 'm', input: 'hi', ...more });
const withItem = (item: unknown) => body({ input: [{ role: 'user', content: 'hi' }, item] });
const withContent = (...content: unknown[]) => body({ input: [{ role: 'user', content }] });

test('every documented member is accepted', (t) => {
  t.equal(responsesRequest.check(everything), true, responsesRequest.explain(everything).message);
  t.equal(responsesRequest.check(agentBody), true, responsesRequest.explain(agentBody).message);
  t.equal(responsesRequest.check(body({ input: [] })), true, 'an empty input');
  t.end();
});

test('every optional member may be null', (t) => {
  for (const key of Object.keys(everything)) {
    if (key === 'model' || key === 'input') continue;
    t.equal(responsesRequest.check(body({ [key]: null })), true, key);
  }
  t.end();
});

test('the unknown passes: members, items, roles, parts, tools, formats, efforts', (t) => {
  const unknown = [
    body({ temperatures: [1], reasoning: { effort: 'ultra', context: 5 }, tool_choice: 'any' }),
    withItem({ type: 'web_search_call', id: 5 }),
    withItem({ type: 'compaction_trigger' }),
    withItem({ role: 'critic', verdict: 5 }),
    withItem({ type: 'message', role: 'critic' }),
    withContent({ type: 'input_video', video: 7 }),
    body({ tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function' }] }, { type: 'x' }] }),
    body({ text: { format: { type: 'grammar' }, verbosity: 'huge' } }),
    body({ max_output_tokens: 1 }),
  ];
  for (const value of unknown)
    t.equal(responsesRequest.check(value), true, responsesRequest.explain(value).message);
  t.end();
});

test('an input may be left out only where the upstream has one', (t) => {
  for (const more of [{ previous_response_id: 'resp_1' }, { prompt: { id: 'p' } }, { conversation: 'c' }]) {
    const value = { model: 'm', ...more };
    t.equal(responsesRequest.check(value), true, responsesRequest.explain(value).message);
  }
  for (const value of [{ model: 'm' }, { model: 'm', previous_response_id: null }]) {
    t.equal(responsesRequest.check(value), false);
    const error = responsesRequest.explain(value);
    t.match(error, { kind: 'missing_parameter', param: 'input', status: 400 });
    t.match(error.message, "'previous_response_id'");
    t.equal(responsesRequest.accept(Buffer.from(JSON.stringify(value))), null);
  }
  t.equal(compactRequest.check({ model: 'm', input: null }), true);
  t.equal(compactRequest.check({ model: 'm', previous_response_id: 'r', tools: 5 }), true);
  t.equal(compactRequest.check({ input: [] }), false);
  t.end();
});

test('a refusal names the place and the fault', (t) => {
  const cases: [object, string, string][] = [
    [{ input: 'hi' }, 'missing_parameter', 'model'],
    [body({ input: 5 }), 'invalid_request', 'input'],
    [withItem('hi'), 'invalid_request', 'input[1]'],
    [withItem({ role: 'user', content: 5 }), 'invalid_request', 'input[1].content'],
    [withItem({ role: 'user' }), 'missing_parameter', 'input[1].content'],
    [withItem({ type: 'message', content: 'x' }), 'missing_parameter', 'input[1].role'],
    [withItem({ type: 'function_call', call_id: 'c', name: 'f' }), 'missing_parameter', 'input[1].arguments'],
    [
      withItem({ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }),
      'invalid_request',
      'input[1].arguments',
    ],
    [
      withItem({ type: 'function_call_output', call_id: 'c', output: { a: 1 } }),
      'invalid_request',
      'input[1].output',
    ],
    [withItem({ type: 'compaction' }), 'missing_parameter', 'input[1].encrypted_content'],
    [withContent({ type: 'input_text' }), 'missing_parameter', 'input[0].content[0].text'],
    [
      withContent({ type: 'input_image', image_url: { url: 'x' } }),
      'invalid_request',
      'input[0].content[0].image_url',
    ],
    [withContent({ text: 'x' }), 'missing_parameter', 'input[0].content[0].type'],
    [body({ max_output_tokens: 0 }), 'invalid_value', 'max_output_tokens'],
    [body({ temperature: 2.5 }), 'invalid_value', 'temperature'],
    [body({ top_logprobs: 21 }), 'invalid_value', 'top_logprobs'],
    [body({ tools: [{ type: 'function' }] }), 'missing_parameter', 'tools[0].name'],
    [body({ tools: [{ name: 'f' }] }), 'missing_parameter', 'tools[0].type'],
    [
      body({ text: { format: { type: 'json_schema', name: 'n' } } }),
      'missing_parameter',
      'text.format.schema',
    ],
    [body({ reasoning: 'high' }), 'invalid_request', 'reasoning'],
    [body({ include: 'x' }), 'invalid_request', 'include'],
    [body({ prompt: 'x' }), 'invalid_request', 'prompt'],
    [body({ stream: 'true' }), 'invalid_request', 'stream'],
  ];
  for (const [value, kind, param] of cases) {
    t.equal(responsesRequest.check(value), false, param);
    const error = responsesRequest.explain(value);
    t.match(error, { kind, param, status: 400 }, `${kind} ${param}: ${error.message}`);
  }
  t.end();
});

test('a body of another endpoint is told where it belongs', (t) => {
  const cases: [object, string][] = [
    [{ model: 'm', messages: [] }, 'POST /v1/chat/completions'],
    [{ contents: [] }, 'POST /v1beta/models/{model}:generateContent'],
  ];
  for (const schema of [responsesRequest, compactRequest]) {
    for (const [value, endpoint] of cases) {
      t.equal(schema.check(value), false);
      t.equal(schema.explain(value).kind, 'invalid_request_body');
      t.match(schema.explain(value).message, endpoint);
    }
  }
  t.end();
});

test('a damaged body gets one verdict from bytes, skeleton and whole, and every refusal an explanation', (t) => {
  const whole = JSON.parse(JSON.stringify(everything)) as Json;
  const wrong = fc.constantFrom<Json | undefined>(
    undefined,
    null,
    true,
    0,
    1.5,
    '',
    'text',
    'message',
    'x'.repeat(300),
    [],
    {},
    ['x'],
    { type: 'input_text' },
    { role: 'user' },
    [{ type: 'function' }],
  );
  let refused = 0;
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(fc.nat(1000), { minLength: 1, maxLength: 7 }), wrong, (turns, by) => {
      const value = damage(whole, turns, by);
      const bytes = Buffer.from(JSON.stringify(value));
      const skeleton = parseBody(bytes, scanBody(bytes));
      for (const schema of [responsesRequest, passedResponsesRequest]) {
        const verdict = schema.check(value);
        assert.equal(schema.check(skeleton), verdict);
        assert.equal(schema.explain(skeleton).param, schema.explain(value).param);
        if (!verdict) {
          assert.equal(schema.accept(bytes), null);
          assert.notEqual(schema.explain(value).message, 'The request is not valid.');
        }
        refused += verdict ? 0 : 1;
        accepted += schema.accept(bytes) === null ? 0 : 1;
      }
    }),
    { numRuns: cases(3000) },
  );
  t.ok(refused > cases(200), `${refused} refused`);
  t.ok(accepted > cases(200), `${accepted} accepted`);
  t.end();
});
