import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { betaHeaders, connect, respond, says } from './client.js';

test('what is wrong with an event is told in an error event, and the socket stays open', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  const item = (more: object): object => ({
    type: 'conversation.item.create',
    event_id: 'mine',
    item: { type: 'message', role: 'user', content: [], ...more },
  });
  const cases: readonly (readonly [sent: object | string, code: string, param: string | null])[] = [
    ['{"type":', 'invalid_json', null],
    ['[]', 'invalid_json', null],
    [{ event_id: 'mine' }, 'missing_required_parameter', 'type'],
    [{ type: 'session.destroy', event_id: 'mine' }, 'invalid_value', 'type'],
    [{ type: 'constructor', event_id: 'mine' }, 'invalid_value', 'type'],
    [{ type: 'session.update', event_id: 'mine', session: {} }, 'missing_required_parameter', 'session.type'],
    [
      { type: 'session.update', event_id: 'mine', session: { type: 'realtime', modalities: ['text'] } },
      'unknown_parameter',
      'session.modalities',
    ],
    [
      { type: 'session.update', event_id: 'mine', session: { type: 'realtime', output_modalities: ['x'] } },
      'invalid_value',
      'session.output_modalities',
    ],
    [
      {
        type: 'session.update',
        event_id: 'mine',
        session: { type: 'realtime', audio: { input: { format: { type: 'audio/pcmu' } } } },
      },
      'unsupported_value',
      'session.audio.input.format.type',
    ],
    [
      { type: 'response.create', event_id: 'mine', response: { modalities: ['text'] } },
      'unknown_parameter',
      'response.modalities',
    ],
    [{ type: 'input_audio_buffer.append', event_id: 'mine', audio: '*' }, 'invalid_value', 'audio'],
    [item({ role: 'robot' }), 'invalid_value', 'item.role'],
    [item({ content: [{ type: 'text', text: 'x' }] }), 'invalid_value', 'item.content[0].type'],
    [
      item({ type: 'function_call_output', call_id: 'c', output: '' }),
      'invalid_tool_call_id',
      'item.call_id',
    ],
    [
      { type: 'conversation.item.delete', event_id: 'mine', item_id: 'x' },
      'item_delete_invalid_item_id',
      'item_id',
    ],
  ];
  for (const [sent, code, param] of cases) {
    client.send(sent);
    const { event_id, error } = await client.next('error');
    t.match(event_id, /^event_\d+$/);
    t.type(error.message, 'string');
    const heard = { type: error.type, code: error.code, param: error.param, event_id: error.event_id };
    const own = typeof sent === 'string' ? null : 'mine';
    t.strictSame(heard, { type: 'invalid_request_error', code, param, event_id: own }, code);
  }
  client.socket.send(Buffer.from('{}'));
  t.match(await client.next('error'), { error: { code: 'invalid_message', event_id: null } });
  client.send(says('still here'));
  client.send(respond);
  await client.next('response.done');
});

test('each form refuses the names of the other', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator, '/realtime', { headers: betaHeaders });
  client.send({ type: 'session.update', session: { type: 'realtime' } });
  t.match(await client.next('error'), { error: { code: 'unknown_parameter', param: 'session.type' } });
  client.send({ type: 'session.update', session: { temperature: 2 } });
  t.match(await client.next('error'), { error: { param: 'session.temperature' } });
  const content = [{ type: 'output_text', text: 'x' }];
  client.send({ type: 'conversation.item.create', item: { type: 'message', role: 'assistant', content } });
  t.match(await client.next('error'), { error: { param: 'item.content[0].type' } });
});

test('a session keeps the last thousand items', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  for (let count = 0; count < 1001; count += 1) {
    client.send(says('x'));
  }
  client.send({ type: 'conversation.item.retrieve', item_id: 'item_1' });
  t.match(await client.next('error'), { error: { code: 'item_retrieve_invalid_item_id' } });
  client.send({ type: 'conversation.item.retrieve', item_id: 'item_2' });
  await client.next('conversation.item.retrieved');
});

test('a message of more than 64 MiB ends the session', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  client.socket.send(Buffer.alloc(64 * 1024 * 1024 + 1));
  t.match(await client.closed, { code: 1009 });
});
