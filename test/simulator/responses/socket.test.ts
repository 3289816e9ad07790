import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { connect, refused } from '../realtime/client.js';

const ask = (input: string, more: object = {}): object => ({
  type: 'response.create',
  model: 'sim-text',
  input,
  ...more,
});

test('every message is answered with the events of a streamed response, one after the other', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator, '/responses');
  client.send(ask('one'));
  client.send(ask('two'));
  for (const text of ['one', 'two']) {
    t.match(await client.next('response.created'), {
      sequence_number: 0,
      response: { status: 'in_progress' },
    });
    t.match(await client.next('response.output_text.done'), { text: `Simulated answer to: ${text}` });
    t.match(await client.next('response.completed'), {
      response: { status: 'completed', usage: { total_tokens: Number } },
    });
  }
  t.equal(client.typesFrom('response.created')[1], 'response.in_progress');
});

test('an invalid message gives an error with its status, and the socket stays open', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator, '/responses');
  const cases: readonly (readonly [sent: object | string, status: number, code: string])[] = [
    ['{', 400, 'invalid_json'],
    [{ type: 'response.make' }, 400, 'invalid_value'],
    [ask('x', { messages: [] }), 400, 'unsupported_parameter'],
    [ask('x', { model: 'other' }), 404, 'model_not_found'],
    [ask('x', { previous_response_id: 'resp_1' }), 400, 'previous_response_not_found'],
    [ask('[[fault:status=429]] x'), 429, 'rate_limit_exceeded'],
    [ask('[[fault:nonsense]] x'), 400, 'unknown_fault'],
  ];
  for (const [sent, status, code] of cases) {
    client.send(sent);
    t.match(await client.next('error'), { status, error: { code } });
  }
  client.send(ask('x'));
  await client.next('response.completed');
});

test('faults of streams are those of the socket', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator, '/responses');
  client.send(ask('[[fault:error-event=failed after=2]] x'));
  t.match(await client.next('response.failed'), { sequence_number: 2 });
  client.send(ask('[[fault:close=1011 after=3]] x'));
  t.match(await client.closed, { code: 1011 });
  t.equal(client.events.at(-1)?.type, 'response.output_item.added');
  for (const fault of ['reset after=1', 'truncate after=1']) {
    const cut = await connect(t, simulator, '/responses');
    cut.send(ask(`[[fault:${fault}]] x`));
    t.match(await cut.closed, { code: 1006 });
  }
  t.equal((await refused(simulator, '/responses', { 'x-simulator-fault': 'status=503' })).status, 503);
});
