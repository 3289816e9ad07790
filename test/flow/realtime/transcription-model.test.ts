import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';

const update = (audio: unknown): object => ({ type: 'session.update', session: { type: 'realtime', audio } });
const withModel = (model: unknown): object => update({ input: { transcription: { model, language: 'de' } } });
const olderWithModel = (model: unknown): object => ({
  type: 'transcription_session.update',
  session: { input_audio_transcription: { model } },
});

/** A session at the upstream u0, whose key may use the models with an open name. */
async function start(t: Test) {
  const upstream = await startRealtimeUpstream(t);
  const at = (place: string, name: string, ...others: object[]) => ({
    protocols: ['audio'],
    targets: [{ upstream: place, model: name }, ...others],
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url, upstream.url],
    config: {
      models: {
        m: { protocols: ['realtime'], targets: [{ upstream: 'u0', model: 'm-there' }] },
        open: at('u1', 'open-elsewhere', { upstream: 'u0', model: 'open-there' }),
        elsewhere: at('u1', 'shared'),
        twice: at('u0', 'alike'),
        closed: at('u0', 'closed-there'),
        closedAlike: at('u0', 'alike'),
        closedElsewhere: at('u1', 'closed-elsewhere'),
        closedShared: at('u0', 'shared'),
      },
      groups: { default: { models: ['m', 'open', 'elsewhere', 'twice'] } },
      keys: [{ id: 'test', hash: hashKey(testKey), groups: ['default'] }],
    },
  });
  const client = await openClient(t, gateway.port);
  const { socket } = await upstream.arrival(0);
  const heard: unknown[] = [];
  socket.on('message', (data: Buffer) => {
    const event: unknown = JSON.parse(data.toString());
    heard.push(event);
    socket.send('{"type":"session.updated"}');
  });
  return { client, heard };
}

test('a model that transcribes the input is named to the upstream by its own name, and others as they came', async (t) => {
  const { client, heard } = await start(t);
  const named: readonly (readonly [string, string])[] = [
    ['open', 'open-there'],
    ['open-there', 'open-there'],
    // A name at another upstream, where the session is not.
    ['open-elsewhere', 'open-elsewhere'],
    ['closed-elsewhere', 'closed-elsewhere'],
    ['elsewhere', 'elsewhere'],
    // An open model and a closed one go by it.
    ['alike', 'alike'],
    // The upstream's own.
    ['whisper-there', 'whisper-there'],
  ];
  const events = named.flatMap(([name]) => [withModel(name), olderWithModel(name)]);
  const others = [
    withModel(null),
    withModel(5),
    update({ input: { transcription: null } }),
    update({ output: { voice: 'closed' } }),
    { type: 'session.update', session: { instructions: 'closed', prompt: { model: 'closed' } } },
  ];
  for (const event of [...events, ...others]) client.socket.send(JSON.stringify(event));
  await client.until(events.length + others.length);
  t.strictSame(heard, [...named.flatMap(([, name]) => [withModel(name), olderWithModel(name)]), ...others]);
});

test('a model that the key may not use transcribes nothing for it, and the session goes on', async (t) => {
  const { client, heard } = await start(t);
  const closed = ['closed', 'closed-there', 'closedElsewhere', 'shared'];
  const ga = 'session.audio.input.transcription.model';
  const beta = 'session.input_audio_transcription.model';
  const refused = closed.flatMap((name) => [
    { event: JSON.stringify(withModel(name)), param: ga },
    { event: JSON.stringify(olderWithModel(name)), param: beta },
  ]);
  const escaped = JSON.stringify(withModel('closed')).replace('"closed"', '"\\u0063losed"');
  refused.push({ event: escaped, param: ga });
  for (const { event } of refused) client.socket.send(event);
  await client.until(refused.length);
  for (const [index, { param }] of refused.entries())
    t.match(JSON.parse(String(client.received[index])), {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        code: 'model_not_found',
        param,
        message: /^The model '[a-zE-]+', which is to transcribe the input, is not open to your key: name one/,
      },
    });
  const unclear = [
    JSON.stringify(withModel('open')).replace('"model"', '"model":"closed","model"'),
    JSON.stringify(withModel('closed')).replace('"model"', '"Model"'),
    JSON.stringify(withModel('closed')).replace('"transcription"', '"Transcription"'),
    JSON.stringify(olderWithModel('closed')).replace('"input_audio_t', '"inputAudioT'),
  ];
  for (const event of unclear) client.socket.send(event);
  await client.until(refused.length + unclear.length);
  for (const event of client.received.slice(refused.length))
    t.match(JSON.parse(String(event)), { type: 'error', error: { type: 'invalid_request_error' } });
  t.strictSame(heard, []);
  client.socket.send(JSON.stringify(withModel('open')));
  await client.until(refused.length + unclear.length + 1);
  t.strictSame(heard, [withModel('open-there')]);
});
