import { once } from 'node:events';
import { test } from 'tap';
import { WebSocket } from 'ws';
import { startGateway, testKey } from '../support/gateway.js';
import { openClient, refusalOf, startRealtimeUpstream } from '../support/realtime.js';
import { connect } from '../support/responses-socket.js';
import { refusedThere, startHearing } from './alike-members.js';

const bearer = { authorization: `Bearer ${testKey}` };
const create = '"type":"response.create"';

test('a message that asks for a response reaches no upstream with a member that is not clear', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  const { send, answer } = await connect(t, gateway.url, bearer);
  const rest = '"model":"made","input":"hi"';
  const attacks = [
    `{${create},${rest},"Model":"dear"}`,
    `{"MODEL":"dear",${create},${rest}}`,
    `{${create},${rest},"mod\\u0065l":"dear"}`,
    `{${create},${rest},"Type":"session.update"}`,
    `{${create},${create},${rest}}`,
    `{${create},${rest},"\u017ftream":false}`,
    `{${create},${rest},"Generate":false}`,
    `{${create},${rest},"generate":true,"generate":false}`,
    `{${create},${rest},"Previous_Response_Id":"resp_1"}`,
    `{${create},${rest},"previousResponseId":"resp_1"}`,
    `{${create},${rest},"previous_response_id":"a","previous_response_id":"b"}`,
    `{${create},${rest},"Store":false}`,
    `{${create},${rest},"Max_Output_Tokens":5}`,
    `{${create},${rest},"response":{"model":"dear"}}`,
    `{${create},${rest},"Response":{"Model":"dear"}}`,
    `{${create},${rest},"api_base":"https://x"}`,
    `{${create},${rest},"extra_body":{"model":"dear"}}`,
    `{${create},${rest},"response":{"api_base":"https://x"}}`,
    `{${create},${rest},"response":{"Fallbacks":["dear"]}}`,
    `{${create},${rest},"session":{"model":"dear"}}`,
    `{${create},${rest},"Session":{"provider":{}}}`,
  ];
  for (const attack of attacks) {
    send(attack);
    const [event] = await answer();
    t.match(event, { type: 'error', status: 400 }, attack);
  }
  t.equal(upstream.requests.length, 0);
  send(`{${create},${rest}}`);
  t.match(JSON.stringify(await answer()), refusedThere, 'the socket serves on');
  t.equal(upstream.requests.length, 1);
});

test('an event of a session names no other model than the session has', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary })),
  );
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    alias: 'real',
  });
  const client = await openClient(t, port);
  const update = '"type":"session.update"';
  const attacks = [
    `{${update},"session":{"model":"dear"}}`,
    `{${update},"session":{"Model":"m"}}`,
    `{${update},"session":{"model":"m","MODEL":"dear"}}`,
    `{${update},"session":{"model":"m","model":"m"}}`,
    `{${update},"session":{"mod\\u0065l":"dear"}}`,
    `{${update},"session":{"model":["dear"]}}`,
    `{${update},"session":[{"model":"dear"}]}`,
    `{${update}}{${update},"session":{"model":"dear"}}`,
    `{${update}} and more`,
    `[{${update}}]`,
    `null {${update}}`,
    `{${update},"a":"\\q"}`,
    `{${update},"a":NaN}`,
    '',
    'null',
    '"text"',
    `{${update},"session":{},"Session":{"model":"dear"}}`,
    `{"Session":{"model":"dear"},${update}}`,
    `{${update},"session":{},"session":{"model":"dear"}}`,
    `{${update},"Type":"x","session":{}}`,
    `{${update},"x":NaN,"session":{"model":"dear"}}`,
    `\ufeff{${update},"session":{"model":"dear"}}`,
    `{"type":"response.create","response":{"model":"dear"}}`,
    `{"type":"response.create","Response":{"model":"dear"}}`,
    `{${update},"session":{"api_base":"https://x"}}`,
    `{${update},"session":{"Provider":{"order":["dear"]}}}`,
    `{${update},"fallbacks":["dear"],"session":{}}`,
    `{"type":"response.create","response":{"extra_body":{"model":"dear"}}}`,
    `{"type":"response.create","response":{"models":["dear"]}}`,
  ];
  for (const [index, attack] of attacks.entries()) {
    client.socket.send(attack);
    await client.until(index + 1);
    const event = JSON.parse(client.received[index] as string) as { type: string };
    t.match(event, { type: 'error', error: { type: 'invalid_request_error' } }, attack);
  }
  client.socket.send(Buffer.from(`{${update},"session":{"model":"dear"}}`));
  await client.until(attacks.length + 1);
  t.match(client.received[attacks.length], '"error"', 'a binary message is no way round');
  const audio = '"model"'.repeat(20_000);
  const legal: readonly (readonly [string, string?])[] = [
    [`{${update},"session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper"}}}}}`],
    [`{${update},"session":{"model":"real"}}`],
    [` {${update},"session":{ "model" : "m" , "x":1}}`, ` {${update},"session":{ "model" : "real" , "x":1}}`],
    [`{"type":"input_audio_buffer.append","audio":${JSON.stringify(audio)}}`],
    [`{"type":"conversation.item.create","item":{"content":[{"Model":"x","session":{"model":"y"}}]}}`],
  ];
  for (const [index, [event, heard = event]] of legal.entries()) {
    client.socket.send(event);
    const at = attacks.length + 1 + index;
    await client.until(at + 1);
    t.equal(client.received[at], heard);
  }
});

test('an event in bytes names no other model to a reader of wider characters or of more than JSON', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary })),
  );
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    alias: 'real',
  });
  const client = await openClient(t, port);
  const event = '{"type":"session.update","session":{"model":"dear"}}';
  const deep = '['.repeat(100) + ']'.repeat(100);
  const attacks = [
    Buffer.from(event, 'utf16le'),
    Buffer.from(`\ufeff${event}`, 'utf16le'),
    Buffer.from(` \n${event}\t`, 'utf16le'),
    Buffer.from(event, 'utf16le').swap16(),
    Buffer.from(`\ufeff${event}`, 'utf16le').swap16(),
    Buffer.from(Array.from(event, (letter) => `\0\0\0${letter}`).join('')),
    Buffer.from(Array.from(event, (letter) => `${letter}\0\0\0`).join('')),
    Buffer.from(event.replace('{', '{"x":NaN,')),
    Buffer.from(event.replace('{', `{"x":${deep},`)),
    Buffer.from(`\ufeff${event.replace('{', '{"x":Infinity,')}\n`),
    Buffer.from(` {"type":"x"} ${event}`),
    Buffer.from(`[${event}]`),
    Buffer.from(`[${event}]`, 'utf16le'),
    Buffer.from('{"type":"x","session":[{"model":"dear"}]}'),
  ];
  for (const [index, attack] of attacks.entries()) {
    client.socket.send(attack);
    await client.until(index + 1);
    t.match(client.received[index], /"invalid_(?:json|value)"/, attack.toString('latin1', 0, 20));
  }
  const sounds = [
    Buffer.alloc(960),
    Buffer.from('7b00220000000000', 'hex'),
    Buffer.from('7b22ff80', 'hex'),
    Buffer.from('5b00ff80', 'hex'),
    Buffer.from('RIFF{"}'),
  ];
  for (const [index, sound] of sounds.entries()) {
    client.socket.send(sound);
    await client.until(attacks.length + index + 1);
    t.same(Buffer.from(client.received[attacks.length + index] as Buffer), sound);
  }
});

test('an event that could lead an upstream elsewhere passes where its config allows it', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data: Buffer) => socket.send(data.toString())),
  );
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { upstreams: { u0: { kind: 'chat', baseUrl: upstream.url, allowMembers: ['provider'] } } },
  });
  const client = await openClient(t, port);
  const event = '{"type":"session.update","session":{"provider":{"order":["a"]},"tools":[{"route":"x"}]}}';
  client.socket.send(event);
  await client.until(1);
  t.equal(client.received[0], event);
});

test('a query that an upstream could read otherwise opens no session', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { defaultModels: { realtime: 'm' } },
  });
  const attacks = [
    'model=m&Model=dear',
    'MODEL=dear',
    'model=m&model=m',
    'model=m&model=dear',
    'mod%65l=dear',
    'model=m&mod%65l=dear',
    'model=m&model%5B%5D=dear',
    'model=m&model[]=dear',
    'model=m&model%00=dear',
    'model=m&x=1;model=dear',
    'model=m&Key=k',
    'model=m&Intent=transcription',
    'model=m&callId=x',
    'model=m&api_base=https%3A%2F%2Fx',
    'model=m&provider=x',
    'model=m&Models=dear',
    'model=m&deployment=dear',
    'model=m&Deployment-Id=dear',
    'deploymen%74=dear&model=m',
  ];
  for (const query of attacks) {
    const refusal = await refusalOf(t, port, { query });
    t.equal(refusal.status, 400, `${query}: ${refusal.body}`);
  }
  t.equal(upstream.arrivals.length, 0);
  await openClient(t, port, { query: 'model=m&voice=x&x=1' });
  const { request } = await upstream.arrival(0);
  t.match(request.url, 'model=m&voice=x&x=1');
});

test('a client that is refused an event can go on', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data: Buffer) => socket.send(data.toString())),
  );
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  client.socket.send('{"type":"session.update","session":{"model":"dear"}}');
  client.socket.send('{"type":"x"}');
  await client.until(2);
  t.equal(client.received[1], '{"type":"x"}');
  client.socket.close();
  await once(client.socket, 'close');
  t.equal(client.socket.readyState, WebSocket.CLOSED);
});
