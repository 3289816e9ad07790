import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { bearer, connect, create, type Event } from '../support/responses-socket.js';
import { fc } from '../support/seed.js';

const long = 'x'.repeat(300);
/** A message, and what its refusal says. */
const broken: readonly (readonly [string, RegExp])[] = [
  [`{"type":"response.create","previous_response_id":"${long}\\q"}`, /byte 35[0-9] .*backslash/],
  [`{"type":"response.create","model":"sim-text","input":"x","previous_response_id":"\\u12"}`, /byte \d+/],
  [`{"type":"${long}\\q"}`, /response\.create|byte \d+/],
  ['{"type":"response.create","previous_response_id":7}', /previous_response_id|model/],
  ['{"type":"response.create","previous_response_id":["a"]}', /previous_response_id|model/],
  ['{"type":"response.create",}', /byte 26/],
  ['{"type":"response.create"', /byte 25/],
  ['', /byte 0/],
  ['[]', /not a JSON object/],
  ['"x"', /not a JSON object/],
  [`{"type":"response.create","input":${'['.repeat(5000)}${']'.repeat(5000)}}`, /./],
  ['['.repeat(100_000), /byte 100000/],
  ['{"__proto__":{"type":"response.create"}}', /type/],
  ['{"type":"response.create","model":"__proto__","input":"x"}', /model|exist/],
  ['{"type":"response.create","model":"constructor","input":"x"}', /model|exist/],
];

test('a message that is broken gets the error event that says where, and the socket and the others go on', async (t) => {
  const { url, gateway } = await startGateway(t, { demo: 'simulator' });
  const [other, socket] = [await connect(t, url), await connect(t, url)];
  for (const [message, words] of broken) {
    socket.send(message);
    const [event] = (await socket.answer()) as [Event];
    t.equal(event.type, 'error', message.slice(0, 80));
    t.ok((event.status ?? 0) >= 400 && (event.status ?? 0) < 500, `${event.status}`);
    t.match(String(event.error?.message), words, message.slice(0, 80));
  }
  for (const each of [other, socket]) {
    each.send(create({ input: 'hello' }));
    t.equal((await each.answer()).at(-1)?.type, 'response.completed');
  }
  const faults = gateway.metrics().counters.find(([name]) => name === 'gateway_faults_total');
  t.strictSame(faults?.[2] ?? [], [], 'nothing of it is a fault of ours');
});

test('no message ends the socket by a fault of ours', async (t) => {
  const { url, gateway } = await startGateway(t, { demo: 'simulator' });
  let socket = await connect(t, url, bearer);
  const member = fc.constantFrom(
    '"type":"response.create"',
    '"type":"response\\u002ecreate"',
    '"generate":false',
    '"model":"sim-text"',
    '"input":"x"',
    '"input":[]',
    `"previous_response_id":"${long}"`,
    `"previous_response_id":"${long}\\q"`,
    '"previous_response_id":null',
    '"previous_response_id":"\ud800"',
    '"store":false',
    '"store":"x',
    '"__proto__":{}',
    '"stream":1e999',
    '"max_output_tokens":1e400',
    '"tools":[{"type":"function","name":"constructor","parameters":{"$ref":"#/__proto__"}}]',
    '"x":[[[[',
    '}',
    '\\',
  );
  const messages = fc.sample(fc.array(member, { maxLength: 6 }), { numRuns: 150 });
  for (const [index, members] of messages.entries()) {
    // More than a hundred refusals in a second end a socket.
    if (index % 50 === 49) socket = await connect(t, url, bearer);
    socket.send(`{${members.join(',')}}`);
    const answer = await socket.answer();
    t.ok(answer.length > 0);
  }
  const faults = gateway.metrics().counters.find(([name]) => name === 'gateway_faults_total');
  t.strictSame(faults?.[2] ?? [], []);
});
