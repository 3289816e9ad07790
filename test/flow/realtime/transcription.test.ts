import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { costOf } from '../../support/cost.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';

/** USD for a million tokens. */
const session = { input: 1, output: 1, perSecond: 0.5 };

async function start(t: Test) {
  const upstream = await startRealtimeUpstream(t);
  const model = (protocol: string, name: string, price: object) => ({
    protocols: [protocol],
    targets: [{ upstream: 'u0', model: name }],
    price,
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: model('realtime', 'm-there', session),
        heard: model('audio', 'heard-there', { input: 1000, output: 2000 }),
        timed: model('audio', 'timed', { perSecond: 0.001 }),
        unpriced: { protocols: ['audio'], targets: [{ upstream: 'u0' }] },
        closed: model('audio', 'closed-there', { input: 1 }),
      },
      groups: { default: { models: ['m', 'heard', 'timed', 'unpriced'] } },
      keys: [{ id: 'test', hash: hashKey(testKey), groups: ['default'] }],
    },
  });
  const client = await openClient(t, gateway.port);
  const { socket, closed } = await upstream.arrival(0);
  const heard: unknown[] = [];
  socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString())));
  return { gateway, client, socket, closed, heard };
}

const withModel = (model: unknown): object => ({
  type: 'session.update',
  session: { type: 'realtime', audio: { input: { transcription: { model, language: 'de' } } } },
});
const olderWithModel = (model: unknown): object => ({
  type: 'transcription_session.update',
  session: { input_audio_transcription: { model } },
});
const transcript = (item: string, usage: object): string =>
  JSON.stringify({
    type: 'conversation.item.input_audio_transcription.completed',
    item_id: item,
    content_index: 0,
    transcript: 'hello',
    usage,
  });
const counted = { type: 'tokens', total_tokens: 13, input_tokens: 10, output_tokens: 3 };
const timed = { type: 'duration', seconds: 4 };

test('transcripts cost what their model does, and have their own names at the upstream', async (t) => {
  const { gateway, client, socket, closed, heard } = await start(t);
  const until = async (events: readonly string[]): Promise<void> => {
    const before = client.received.length;
    for (const event of events) socket.send(event);
    await client.until(before + events.length);
  };
  const ask = async (event: object): Promise<void> => {
    const before = heard.length;
    client.socket.send(JSON.stringify(event));
    while (heard.length === before) await new Promise((resolve) => socket.once('message', resolve));
  };
  // Of a model of the upstream's own: at the price of the session.
  await ask(withModel('whisper-there'));
  await until([transcript('a', counted), transcript('b', timed)]);
  let cost = 13_000 + 4 * 500_000_000;
  await ask(withModel('heard'));
  await until([transcript('c', counted), transcript('c', counted)]);
  cost += 10 * 1_000_000 + 3 * 2_000_000;
  await ask(olderWithModel('timed'));
  await until([transcript('d', timed)]);
  cost += 4_000_000;
  // Counted in what it has no price for, or without any price: nothing is free.
  await until([transcript('e', counted)]);
  await ask(withModel('unpriced'));
  await until([transcript('f', counted)]);
  cost += 2 * 13_000;
  t.match(heard, [
    withModel('whisper-there'),
    withModel('heard-there'),
    olderWithModel('timed'),
    withModel('unpriced'),
  ]);
  client.socket.close();
  await closed;
  t.match(await gateway.line(({ msg }) => msg === 'request'), { inputTokens: 40, outputTokens: 12 });
  t.equal(costOf(gateway), cost);
});

test('a model that the key may not use transcribes nothing for it', async (t) => {
  const { client, heard } = await start(t);
  const refused = [withModel('closed'), olderWithModel('closed'), withModel('closed-there')];
  for (const event of refused) client.socket.send(JSON.stringify(event));
  await client.until(refused.length);
  for (const event of client.received)
    t.match(JSON.parse(String(event)), {
      type: 'error',
      error: {
        message: /The model 'closed(-there)?', which is to transcribe the input, is not open to your key/,
      },
    });
  t.strictSame(heard, []);
});
