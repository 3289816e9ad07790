import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { betaHeaders, betaTextOnly, connect, respond, says, textOnly } from './client.js';

const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

test('a session begins with its object, in the form that the client asked for', async (t) => {
  const simulator = await simulate(t);
  const ga = await connect(t, simulator);
  t.match(await ga.next('session.created'), {
    event_id: 'event_1',
    session: {
      type: 'realtime',
      object: 'realtime.session',
      id: 'sess_1',
      model: 'sim-realtime',
      output_modalities: ['audio'],
      audio: { input: { format: { type: 'audio/pcm', rate: 24_000 } }, output: { voice: 'alloy' } },
      max_output_tokens: 'inf',
    },
  });
  t.match(await ga.next('conversation.created'), { event_id: 'event_2', conversation: { id: 'conv_1' } });
  for (const options of [
    { headers: betaHeaders },
    { protocols: ['realtime', 'openai-insecure-api-key.k', 'openai-beta.realtime-v1'] },
  ]) {
    const beta = await connect(t, simulator, '/realtime', options);
    const { session } = await beta.next('session.created');
    t.match(session, { modalities: ['text', 'audio'], input_audio_format: 'pcm16', temperature: 0.8 });
    t.notOk('type' in session);
    t.equal(beta.socket.protocol, options.protocols === undefined ? '' : 'realtime');
  }
});

test('a turn of text has the order and the names of its form', async (t) => {
  const simulator = await simulate(t);
  const ga = await connect(t, simulator);
  ga.send(textOnly);
  t.match(await ga.next('session.updated'), { session: { output_modalities: ['text'] } });
  ga.send(says('Hello there'));
  t.match(await ga.next('conversation.item.done'), {
    previous_item_id: null,
    item: { id: 'item_1', object: 'realtime.item', status: 'completed', role: 'user' },
  });
  ga.send(respond);
  await ga.next('rate_limits.updated');
  t.strictSame(ga.typesFrom('response.created'), [
    'response.created',
    'response.output_item.added',
    'conversation.item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'conversation.item.done',
    'response.done',
    'rate_limits.updated',
  ]);
  const deltas = ga.events.filter(({ type }) => type === 'response.output_text.delta');
  t.equal(deltas.map(({ delta }) => delta).join(''), 'Simulated answer to: Hello there');
  const text = 'Simulated answer to: Hello there';
  t.match(ga.events.at(-2), {
    response: {
      id: 'resp_1',
      object: 'realtime.response',
      status: 'completed',
      status_details: null,
      conversation_id: 'conv_1',
      output_modalities: ['text'],
      output: [{ id: 'item_2', role: 'assistant', content: [{ type: 'output_text', text }] }],
      usage: {
        total_tokens: 11,
        input_tokens: 3,
        output_tokens: 8,
        input_token_details: { text_tokens: 3, audio_tokens: 0, image_tokens: 0, cached_tokens: 0 },
        output_token_details: { text_tokens: 8, audio_tokens: 0 },
      },
    },
  });
  t.match(ga.events.at(-1), { rate_limits: [{ name: 'requests', remaining: 999 }, { name: 'tokens' }] });
  t.strictSame(
    ga.events.map(({ event_id }) => event_id),
    ga.events.map((_, index) => `event_${index + 1}`),
  );

  const beta = await connect(t, simulator, '/realtime', { headers: betaHeaders });
  beta.send(betaTextOnly);
  beta.send(says('Hello there'));
  beta.send(respond);
  await beta.next('rate_limits.updated');
  t.strictSame(beta.typesFrom('response.created'), [
    'response.created',
    'response.output_item.added',
    'conversation.item.created',
    'response.content_part.added',
    'response.text.delta',
    'response.text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.done',
    'rate_limits.updated',
  ]);
  t.match(beta.events.at(-2), {
    response: { modalities: ['text'], output: [{ content: [{ type: 'text', text }] }] },
  });
});

test('a turn of audio brings samples and, beside them, what they say', async (t) => {
  const simulator = await simulate(t);
  for (const { headers, audio, transcript, part } of [
    {
      headers: {},
      audio: 'response.output_audio',
      transcript: 'response.output_audio_transcript',
      part: 'output_audio',
    },
    {
      headers: betaHeaders,
      audio: 'response.audio',
      transcript: 'response.audio_transcript',
      part: 'audio',
    },
  ]) {
    const client = await connect(t, simulator, '/realtime', { headers });
    client.send(says('Hi'));
    client.send(respond);
    const { response } = await client.next('response.done');
    const told = 'Simulated answer to: Hi';
    t.match(response.output, [{ content: [{ type: part, transcript: told }] }]);
    const samples = client.events
      .filter(({ type }) => type === `${audio}.delta`)
      .map(({ delta }) => Buffer.from(delta, 'base64'));
    t.equal(Buffer.concat(samples).length, 4 * 12_000, 'four words of a quarter of a second');
    const types = client.events.map(({ type }) => type);
    t.ok(types.indexOf(`${audio}.delta`) < types.lastIndexOf(`${transcript}.delta`), 'they come together');
    t.strictSame(
      types.filter((type) => type.startsWith('response.') && type.endsWith('.done')),
      [
        `${audio}.done`,
        `${transcript}.done`,
        'response.content_part.done',
        'response.output_item.done',
        'response.done',
      ],
    );
    t.match(response.usage.output_token_details, { text_tokens: 6, audio_tokens: 20 });
  }
});

test('a function is called where the text asks for it, and its output is answered', async (t) => {
  const simulator = await simulate(t);
  for (const headers of [{}, betaHeaders]) {
    const client = await connect(t, simulator, '/realtime', { headers });
    client.send(says('What is the weather in Oslo?'));
    client.send({ type: 'response.create', response: { tools: [weather], tool_choice: 'auto' } });
    const { response } = await client.next('response.done');
    const [call] = response.output;
    t.match(call, { type: 'function_call', name: 'get_weather', arguments: '{"city":"Oslo"}' });
    const isBeta = headers === betaHeaders;
    t.strictSame(
      client.typesFrom('response.created').filter((type) => type !== 'rate_limits.updated'),
      [
        'response.created',
        'response.output_item.added',
        isBeta ? 'conversation.item.created' : 'conversation.item.added',
        'response.function_call_arguments.delta',
        'response.function_call_arguments.done',
        'response.output_item.done',
        ...(isBeta ? [] : ['conversation.item.done']),
        'response.done',
      ],
    );
    const done = client.events.find(({ type }) => type === 'response.function_call_arguments.done');
    t.match(done, { call_id: call.call_id, name: 'get_weather', arguments: '{"city":"Oslo"}' });
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'rain' };
    client.send({ type: 'conversation.item.create', item: output });
    client.send(respond);
    const after = await client.next('response.done');
    const told = 'Simulated answer to: What is the weather in Oslo?\nTool result: rain';
    t.equal(after.response.output[0].content[0].transcript, told);
  }
});

test('audio that is committed becomes an item, transcribed where that is asked for, and is answered', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  const append = { type: 'input_audio_buffer.append', audio: Buffer.alloc(4800).toString('base64') };
  const input = { transcription: { model: 'sim-transcribe' } };
  client.send({
    type: 'session.update',
    session: { type: 'realtime', output_modalities: ['text'], audio: { input } },
  });
  t.match(await client.next('session.updated'), {
    session: { audio: { input: { format: { type: 'audio/pcm' }, ...input }, output: { voice: 'alloy' } } },
  });
  client.send(append);
  client.send({ type: 'input_audio_buffer.clear' });
  await client.next('input_audio_buffer.cleared');
  client.send(append);
  client.send(append);
  client.send({ type: 'input_audio_buffer.commit' });
  t.match(await client.next('input_audio_buffer.committed'), { previous_item_id: null, item_id: 'item_1' });
  t.match(await client.next('conversation.item.added'), {
    item: { id: 'item_1', role: 'user', content: [{ type: 'input_audio', transcript: null }] },
  });
  const transcript = 'Simulated transcription of 9600 bytes of audio.';
  const completed = 'conversation.item.input_audio_transcription.completed';
  t.match(await client.next(completed), { item_id: 'item_1', transcript, usage: { type: 'tokens' } });
  client.send(respond);
  t.match(await client.next('response.done'), {
    response: {
      output: [{ content: [{ text: `Simulated answer to: ${transcript}` }] }],
      usage: { input_token_details: { text_tokens: 0, audio_tokens: 2 } },
    },
  });
  client.send({ type: 'input_audio_buffer.commit' });
  t.match(await client.next('error'), { error: { code: 'input_audio_buffer_commit_empty' } });
});

test('items can be placed, looked at, cut and deleted', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  client.send(says('one'));
  client.send({ ...says('zero'), previous_item_id: 'root' });
  client.send({ ...says('half'), previous_item_id: 'item_2' });
  for (const before of [null, null, 'item_2']) {
    t.match(await client.next('conversation.item.added'), { previous_item_id: before });
  }
  client.send(respond);
  const { response } = await client.next('response.done');
  const { id } = response.output[0];
  client.send({ type: 'conversation.item.retrieve', item_id: id });
  t.match(await client.next('conversation.item.retrieved'), { item: { id, role: 'assistant' } });
  const cut = { type: 'conversation.item.truncate', item_id: id, content_index: 0 };
  client.send({ ...cut, audio_end_ms: 500 });
  t.match(await client.next('conversation.item.truncated'), { item_id: id, audio_end_ms: 500 });
  client.send({ ...cut, audio_end_ms: 501 });
  t.match(await client.next('error'), { error: { param: 'audio_end_ms' } });
  client.send({ type: 'conversation.item.delete', item_id: id });
  t.match(await client.next('conversation.item.deleted'), { item_id: id });
  client.send({ type: 'conversation.item.retrieve', item_id: id });
  t.match(await client.next('error'), { error: { code: 'item_retrieve_invalid_item_id', param: 'item_id' } });
});

test('a response of its own input leaves the conversation as it is', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  client.send(says('one'));
  const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'apart' }] }];
  const response = { conversation: 'none', input, metadata: { a: 'b' }, output_modalities: ['text'] };
  client.send({ type: 'response.create', response });
  t.match(await client.next('response.done'), {
    response: {
      conversation_id: null,
      metadata: { a: 'b' },
      output: [{ content: [{ text: 'Simulated answer to: apart' }] }],
    },
  });
  t.equal(client.events.filter(({ type }) => type === 'conversation.item.added').length, 1);
});

test('a limit ends a response early and says so', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  client.send(says('one'));
  client.send({
    type: 'response.create',
    response: { max_output_tokens: 3, output_modalities: ['text'] },
  });
  t.match(await client.next('response.done'), {
    response: {
      status: 'incomplete',
      status_details: { type: 'incomplete', reason: 'max_output_tokens' },
      output: [{ status: 'incomplete', content: [{ text: 'Simulated an' }] }],
    },
  });
});

test('cancel ends a response in good order, once', async (t) => {
  const simulator = await simulate(t, { tokensPerSecond: 4 });
  const client = await connect(t, simulator);
  client.send(textOnly);
  client.send(says('a rather long text, so that there is time'));
  client.send(respond);
  await client.next('response.content_part.added');
  client.send(respond);
  t.match(await client.next('error'), { error: { code: 'conversation_already_has_active_response' } });
  client.send({ type: 'response.cancel', response_id: 'resp_9' });
  t.match(await client.next('error'), { error: { code: 'response_cancel_not_active' } });
  client.send({ type: 'response.cancel' });
  const { response } = await client.next('response.done');
  t.match(response, {
    status: 'cancelled',
    status_details: { type: 'cancelled', reason: 'client_cancelled' },
    output: [{ status: 'incomplete', content: [{ text: /^Simulated/ }] }],
  });
  t.strictSame(client.typesFrom('response.output_text.done').slice(0, 5), [
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'conversation.item.done',
    'response.done',
  ]);
  client.send({ type: 'response.cancel' });
  t.match(await client.next('error'), { error: { code: 'response_cancel_not_active' } });
});
