import { test } from 'tap';
import { costOf } from '../../support/cost.js';
import { startGateway } from '../../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';

/** USD for a million tokens, and for a second. */
const price = { input: 1000, output: 10_000, perSecond: 0.1 };
const transcript = { type: 'conversation.item.input_audio_transcription.completed', transcript: 'abcd efgh' };

async function start(t: Parameters<typeof openClient>[0], ofModel: object = price) {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: { m: { protocols: ['realtime'], targets: [{ upstream: 'u0', model: 'm' }], price: ofModel } },
    },
  });
  const client = await openClient(t, gateway.port);
  return { gateway, client, ...(await upstream.arrival(0)) };
}

test('a response whose words its end alone has, and a transcript, are estimated if no usage of them is reported', async (t) => {
  const { gateway, client, socket, closed } = await start(t);
  const content = [{ type: 'output_text', text: 'abcdefgh' }];
  const output = [{ type: 'message', content }];
  const events = [
    { type: 'response.created', response: { id: 'a' } },
    { type: 'response.done', response: { id: 'a', status: 'completed', usage: null, output } },
    { ...transcript, item_id: 'a' },
    // Its seconds pay for it.
    { ...transcript, item_id: 'b', usage: { type: 'duration', seconds: 2 } },
    { type: 'response.created', response: { id: 'b' } },
    { type: 'response.done', response: { id: 'b', status: 'failed', usage: null, output: [] } },
  ];
  for (const event of events) socket.send(JSON.stringify(event));
  await client.until(events.length);
  client.socket.close();
  await closed;
  const line = await gateway.line(({ msg }) => msg === 'request');
  t.match(line, { outputTokens: 2 + 3, tokensEstimated: true });
  t.equal(costOf(gateway), 5 * 10_000_000 + 200_000_000);
});

test('the usage in a binary frame is charged', async (t) => {
  const { gateway, client, socket, closed } = await start(t);
  const usage = { input_tokens: 9, output_tokens: 5 };
  socket.send(Buffer.from(JSON.stringify({ type: 'response.done', response: { id: 'a', usage } })));
  await client.until(1);
  client.socket.close();
  await closed;
  t.match(await gateway.line(({ msg }) => msg === 'request'), { inputTokens: 9, outputTokens: 5 });
});

test('a transcript that names no seconds is charged by its tokens or words where seconds are the whole price', async (t) => {
  const { gateway, client, socket, closed } = await start(t, { perSecond: 0.1 });
  const usage = {
    type: 'tokens',
    input_tokens: 40,
    output_tokens: 3,
    input_token_details: { audio_tokens: 40 },
  };
  const events = [
    { ...transcript, item_id: 'a', usage: { type: 'duration', seconds: 2 } },
    { ...transcript, item_id: 'b', usage },
    // Nine bytes.
    { ...transcript, item_id: 'c' },
    { type: 'response.done', response: { id: 'a', usage: { input_tokens: 9, output_tokens: 5 } } },
  ];
  for (const event of events) socket.send(JSON.stringify(event));
  await client.until(events.length);
  client.socket.close();
  await closed;
  await gateway.line(({ msg }) => msg === 'request');
  t.equal(costOf(gateway), 6.6 * 100_000_000);
});
