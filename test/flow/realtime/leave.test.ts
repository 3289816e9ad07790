import { type Test, test } from 'tap';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';

const created = JSON.stringify({ type: 'response.created', response: { status: 'in_progress' } });
const delta = JSON.stringify({ type: 'response.output_audio_transcript.delta', delta: 'hi' });
const done = JSON.stringify({
  type: 'response.done',
  response: { usage: { total_tokens: 40, input_tokens: 0, output_tokens: 40 } },
});
const transcriptDelta = JSON.stringify({
  type: 'conversation.item.input_audio_transcription.delta',
  delta: 'hi',
});
const transcript = JSON.stringify({
  type: 'conversation.item.input_audio_transcription.completed',
  transcript: 'hi',
  usage: { type: 'tokens', input_tokens: 0, output_tokens: 7 },
});
/** Of a token, in nano-dollars. */
const cost = 10_000_000;

async function start(t: Test, onLeave: 'drain' | 'cancel' = 'drain', sessionMs = 60_000) {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await startGateway(t, {
    config: {
      sockets: { sessionMs },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'], onLeave } },
      models: {
        m: {
          protocols: ['realtime'],
          targets: [{ upstream: 'u', model: 'm' }],
          price: { output: 10_000 },
        },
      },
    },
  });
  const client = await openClient(t, gateway.port);
  return { gateway, client, upstream: await upstream.arrival(0) };
}

for (const leave of ['close', 'terminate'] as const)
  test(`a client that leaves within a response (${leave}) pays what that comes to`, async (t) => {
    const { gateway, client, upstream } = await start(t);
    const { socket, closed } = upstream;
    const heard: string[] = [];
    socket.on('message', (data: Buffer) => {
      heard.push(data.toString());
      socket.send(delta);
      socket.send(done);
    });
    socket.send(created);
    socket.send(delta);
    await client.until(2);
    client.socket[leave]();
    await closed;
    t.strictSame(heard, ['{"type":"response.cancel"}']);
    const line = await gateway.line(({ msg }) => msg === 'request');
    t.match(line, { outputTokens: 40, outcome: leave === 'close' ? 'complete' : 'client_gone' });
    t.equal(costOf(gateway), 40 * cost);
  });

for (const [what, asked] of [
  ['plain', '{"type":"response.create"}'],
  ['whose type comes last', '{"response":{"metadata":{"type":"x"}},"type":"response.create"}'],
  ['whose type is in escapes', '{"type":"response.\\u0063reate"}'],
  ['whose name of a type is in escapes', '{"\\u0074ype":"response.create"}'],
] as const)
  test(`a client that leaves right behind its question (${what}) pays what that comes to`, async (t) => {
    const { gateway, client, upstream } = await start(t);
    const { socket, closed } = upstream;
    const heard: string[] = [];
    socket.on('message', (data: Buffer) => {
      heard.push(data.toString());
      if (heard.length === 2) for (const message of [created, done]) socket.send(message);
    });
    client.socket.send(asked);
    client.socket.close();
    await closed;
    t.strictSame(heard, [asked, '{"type":"response.cancel"}']);
    t.match(await gateway.line(({ msg }) => msg === 'request'), { outputTokens: 40, outcome: 'complete' });
    t.equal(costOf(gateway), 40 * cost);
  });

test('a session that the gateway ends within a response pays what that comes to', async (t) => {
  const { gateway, client, upstream } = await start(t, 'drain', 500);
  const { socket, closed } = upstream;
  socket.on('message', () => {
    socket.send(delta);
    socket.send(done);
  });
  socket.send(created);
  t.match(await client.closed, { code: 1001, reason: /maximum duration/ });
  await closed;
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outputTokens: 40, outcome: 'refused' });
  t.equal(costOf(gateway), 40 * cost);
});

test('a question that the upstream has refused is not waited for', async (t) => {
  const { gateway, client, upstream } = await start(t);
  const heard: string[] = [];
  upstream.socket.on('message', (data: Buffer) => {
    heard.push(data.toString());
    upstream.socket.send('{"type":"error","error":{"message":"There is a response under way."}}');
  });
  client.socket.send('{"type":"response.create"}');
  await client.until(1);
  client.socket.close();
  await upstream.closed;
  t.equal(heard.length, 1, 'nothing is cancelled');
  await gateway.line(({ msg }) => msg === 'request');
  t.equal(costOf(gateway), 0);
});

test('a client that leaves within a transcript pays what that comes to', async (t) => {
  const { gateway, client, upstream } = await start(t);
  upstream.socket.send(transcriptDelta);
  await client.until(1);
  client.socket.close();
  await client.closed;
  upstream.socket.send(transcript);
  await upstream.closed;
  await gateway.line(({ msg }) => msg === 'request');
  t.equal(costOf(gateway), 7 * cost);
});

test('an upstream that goes before it has told, and one that is not to be heard, end the session', async (t) => {
  const silent = await start(t);
  silent.upstream.socket.send(created);
  await silent.client.until(1);
  const told = new Promise((resolve) => silent.upstream.socket.once('message', resolve));
  silent.client.socket.close();
  await told;
  silent.upstream.socket.terminate();
  await silent.gateway.line(({ msg }) => msg === 'request');
  const cancelled = await start(t, 'cancel');
  cancelled.upstream.socket.send(created);
  await cancelled.client.until(1);
  cancelled.client.socket.close();
  await cancelled.upstream.closed;
  await cancelled.gateway.line(({ msg }) => msg === 'request');
  await eventually(() => cancelled.upstream.socket.readyState === 3);
  t.equal(costOf(silent.gateway) + costOf(cancelled.gateway), 0);
});

test('a session that ends within a response that nobody tells the usage of pays what was shown of it', async (t) => {
  const audio = JSON.stringify({
    type: 'response.output_audio.delta',
    delta: Buffer.alloc(48_000).toString('base64'),
  });
  // A second of sound, and two letters.
  const shown = 21;
  for (const before of [0, 40]) {
    for (const end of ['client', 'upstream', 'lost'] as const) {
      const { gateway, client, upstream } = await start(t, 'cancel');
      const messages = [...(before === 0 ? [] : [created, done]), created, delta, audio];
      for (const message of messages) upstream.socket.send(message);
      await client.until(messages.length);
      if (end === 'client') client.socket.close();
      else upstream.socket[end === 'lost' ? 'terminate' : 'close']();
      await client.closed;
      const line = await gateway.line(({ msg }) => msg === 'request');
      t.match(line, { outputTokens: before + shown, tokensPartial: true }, end);
      t.equal(costOf(gateway), (before + shown) * cost, end);
    }
  }
});

test('a response that is done and tells no usage costs what was shown of it, as an estimate', async (t) => {
  for (const response of [{ usage: null }, {}]) {
    const { gateway, client, upstream } = await start(t);
    const untold = JSON.stringify({ type: 'response.done', response });
    const messages = [created, delta, untold, created, done];
    for (const message of messages) upstream.socket.send(message);
    await client.until(messages.length);
    client.socket.close();
    await client.closed;
    const line = await gateway.line(({ msg }) => msg === 'request');
    t.match(line, { outputTokens: 41, tokensEstimated: true });
    t.equal(costOf(gateway), 41 * cost);
  }
});

test('a response that its upstream tells twice of is charged once, and another one by its id once more', async (t) => {
  const { gateway, client, upstream } = await start(t);
  const begun = JSON.stringify({ type: 'response.created', response: { id: 'resp_1' } });
  const ended = JSON.stringify({
    type: 'response.done',
    response: { id: 'resp_1', usage: { total_tokens: 40, input_tokens: 0, output_tokens: 40 } },
  });
  const messages = [begun, ended, ended, begun, ended, ended, ended];
  for (const message of messages) upstream.socket.send(message);
  await client.until(messages.length);
  client.socket.close();
  await client.closed;
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outputTokens: 80 });
  t.equal(costOf(gateway), 80 * cost);
});
