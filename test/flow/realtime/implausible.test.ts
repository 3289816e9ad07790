import { test } from 'tap';
import { costOf } from '../../support/cost.js';
import { countersOf } from '../../support/counters.js';
import { startGateway } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';

/** USD for a million tokens, and for a second. */
const price = { input: 1000, output: 10_000, perSecond: 0.1 };
const much = 1e12;
const transcript = { type: 'conversation.item.input_audio_transcription.completed', transcript: 'abcd efgh' };

test('what a response or transcript has used is estimated by what it says if no session can have had what is reported', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { store, lines } = openLedger(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      store,
      usage: { ledger: true },
      models: { m: { protocols: ['realtime'], targets: [{ upstream: 'u0', model: 'm' }], price } },
    },
  });
  const client = await openClient(t, gateway.port);
  const { socket, closed } = await upstream.arrival(0);
  const usage = { input_tokens: 9, output_tokens: much };
  const content = [
    { type: 'output_text', text: 'abcd' },
    { type: 'output_audio', transcript: 'abcdefgh' },
  ];
  const output = [
    { type: 'message', content },
    { type: 'function_call', arguments: '{"a":1} ' },
  ];
  const events = [
    // By its deltas: 2 tokens.
    { type: 'response.created', response: { id: 'a' } },
    { type: 'response.output_text.delta', delta: 'abcdefgh' },
    { type: 'response.done', response: { id: 'a', usage, output: [] } },
    // By what its end has of it: 5.
    { type: 'response.done', response: { id: 'b', usage, output } },
    // Those at the same time by their deltas alone: 4.
    ...['c', 'd'].map((id) => ({ type: 'response.created', response: { id } })),
    ...['c', 'd'].map(() => ({ type: 'response.output_text.delta', delta: 'abcdefgh' })),
    { type: 'response.done', response: { id: 'c', usage, output } },
    { type: 'response.done', response: { id: 'd', usage, output } },
    // 3 each, and no seconds.
    { ...transcript, item_id: 'a', usage: { type: 'tokens', ...usage } },
    { ...transcript, item_id: 'b', usage: { type: 'duration', seconds: much } },
  ];
  for (const event of events) socket.send(JSON.stringify(event));
  await client.until(events.length);
  client.socket.close();
  await closed;
  t.match(await lines(1), [{ outputTokens: 17, mediaSeconds: 0, costNanoUsd: 17 * 10_000_000 }]);
  t.equal(costOf(gateway), 17 * 10_000_000);
  t.strictSame(countersOf(gateway, 'gateway_implausible_usage_total'), { 'u0/m': 1 });
});
