import { test } from 'tap';
import { chatRequest } from '../../src/protocols/chat/request/schema.js';
import { validateBody } from '../../src/schema/accept.js';
import { usualCost } from '../../src/wire/json.js';
import { spliceBody } from '../../src/wire/splice.js';
import { refusalOf } from '../support/refusal.js';

const validate = (body: unknown) =>
  validateBody(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), chatRequest, usualCost);
const messages = [{ role: 'user', content: 'hi' }];

test('a valid body yields what the later phases need', (t) => {
  const plain = validate({ model: 'm', messages });
  t.match(plain, { model: 'm', stream: false, includeUsage: false });
  const stream = validate({ model: 'm', messages, stream: true, stream_options: { include_usage: true } });
  t.match(stream, { model: 'm', stream: true, includeUsage: true });
  t.match(validate({ model: 'm', messages, stream: null, stream_options: null }), {
    stream: false,
    includeUsage: false,
  });
  t.end();
});

test('the model name is read as JSON means it, and whole', (t) => {
  t.equal(validate('{"model":"\\u006d\\"x","messages":[{"role":"user","content":"x"}]}').model, 'm"x');
  const long = 'm'.repeat(400);
  t.equal(validate({ model: long, messages }).model, long);
  t.end();
});

test('every sort of bad body is a 400 with its reason', (t) => {
  const cases: [unknown, string, string | null][] = [
    ['', 'invalid_json', null],
    ['{"model":"m","messages":[}', 'invalid_json', null],
    ['[]', 'invalid_request', null],
    ['{"model":"m","model":"n","messages":[{"role":"user","content":"x"}]}', 'invalid_request_body', 'model'],
    [{ model: 'm', input: 'hi' }, 'invalid_request_body', 'input'],
    [
      { model: 'm', messages: [...messages, { role: 'user', content: [{ type: 'text' }] }] },
      'missing_parameter',
      'messages[1].content[0].text',
    ],
    [{ model: 'm', messages, temperature: 9 }, 'invalid_value', 'temperature'],
    [
      `{"model":"m","messages":[{"role":"user","content":"x"}],"x":${'['.repeat(64)}${']'.repeat(64)}}`,
      'invalid_request',
      null,
    ],
  ];
  for (const [body, kind, param] of cases) {
    t.match(
      refusalOf(() => validate(body)),
      { kind, param, status: 400 },
      kind,
    );
  }
  t.end();
});

test('a long prompt is validated without its text, and goes on byte for byte', (t) => {
  const content = 'a "quoted" word, 漢字\n'.repeat(10_000);
  const body = Buffer.from(
    JSON.stringify({ model: 'alias', messages: [{ role: 'user', content }], stream: true }),
  );
  const valid = validateBody(body, chatRequest, usualCost);
  const sent = Buffer.concat(spliceBody(body, valid.scan, { model: 'real', includeUsage: false })).toString();
  t.equal(sent, body.toString().replace('"alias"', '"real"'));
  t.end();
});

test('a refusal of a long value does not repeat it', (t) => {
  const error = refusalOf(() => validate({ model: 'm', messages, temperature: 'secret '.repeat(100) }));
  t.equal(error?.param, 'temperature');
  t.notMatch(error?.message, 'secret');
  t.end();
});
