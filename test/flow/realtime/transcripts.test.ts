import { type Test, test } from 'tap';
import { costOf } from '../../support/cost.js';
import { startGateway } from '../../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';

/*
 * The input of a session is transcribed by another model, whose price is another
 * (https://platform.openai.com/docs/guides/realtime-transcription).
 */

const committed = (id: string) => ({
  type: 'input_audio_buffer.committed',
  event_id: 'event_1',
  previous_item_id: null,
  item_id: id,
});
const updated = (model: unknown) => ({
  type: 'session.updated',
  session: { type: 'realtime', audio: { input: { transcription: { model } } } },
});
const olderUpdated = (model: unknown) => ({
  type: 'transcription_session.updated',
  session: { input_audio_transcription: { model } },
});
const transcribed = (id: string, usage: object | null) => ({
  type: 'conversation.item.input_audio_transcription.completed',
  item_id: id,
  content_index: 0,
  transcript: 'hi',
  usage,
});
const tokens = (input: number, output: number) => ({
  type: 'tokens',
  total_tokens: input + output,
  input_tokens: input,
  output_tokens: output,
});
const done = { type: 'response.done', response: { usage: tokens(10, 10) } };

/** Runs a session in which the upstream sends events, and returns its cost in nano-dollars and its line of the log. */
async function run(
  t: Test,
  events: readonly object[],
  session: object = { price: { input: 100, output: 100 } },
) {
  const upstream = await startRealtimeUpstream(t);
  const at = (model: string) => ({ protocols: ['audio'], targets: [{ upstream: 'u0', model }] });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: { protocols: ['realtime'], targets: [{ upstream: 'u0', model: 'm' }], ...session },
        dear: { ...at('dear-there'), price: { input: 1000, output: 10_000 } },
        alike: { ...at('m'), price: { input: 1, output: 1 } },
        cheap: { ...at('cheap-there'), price: { input: 1, output: 1 } },
        timed: { ...at('timed-there'), price: { perSecond: 0.5 } },
        unpriced: at('unpriced-there'),
      },
    },
  });
  const client = await openClient(t, gateway.port);
  const { socket, closed } = await upstream.arrival(0);
  for (const event of events) socket.send(JSON.stringify(event));
  await client.until(events.length);
  client.socket.close();
  await closed;
  const line = await gateway.line(({ msg }) => msg === 'request');
  return { cost: costOf(gateway), line };
}

test('a transcript costs what the model costs that has made it, and a response what the session’s costs', async (t) => {
  const { cost, line } = await run(t, [
    updated('dear-there'),
    committed('a'),
    transcribed('a', tokens(5, 2)),
    done,
    olderUpdated('cheap-there'),
    committed('b'),
    transcribed('b', tokens(7, 3)),
  ]);
  t.equal(cost, 5 * 1e6 + 2 * 1e7 + 20 * 1e5 + 10 * 1e3);
  t.match(line, { inputTokens: 22, outputTokens: 15 });
});

test('speech costs what the model of its moment costs, though the session names another before its transcript', async (t) => {
  const { cost } = await run(t, [
    updated('dear-there'),
    committed('a'),
    updated('cheap-there'),
    committed('b'),
    transcribed('b', tokens(1, 0)),
    transcribed('a', tokens(1, 0)),
    // Speech that was never committed has the model of the moment.
    transcribed('c', tokens(1, 0)),
  ]);
  t.equal(cost, 1e3 + 1e6 + 1e3);
});

test('a transcript that is counted in seconds has the price by the second of its model', async (t) => {
  const usage = { type: 'duration', seconds: 4 };
  const { cost } = await run(t, [updated('timed-there'), committed('a'), transcribed('a', usage)]);
  t.equal(cost, 4 * 5e8);
});

test('a transcript by a model without a price or a place in the config costs as much as the session’s own', async (t) => {
  for (const model of ['unpriced-there', 'whisper-1', null, 5, 'x'.repeat(300)]) {
    const { cost } = await run(t, [updated(model), committed('a'), transcribed('a', tokens(5, 2))]);
    t.equal(cost, 7 * 1e5, `${model}`);
  }
});

test('a transcript in seconds by a model without a price costs as many tokens of the session’s own as are expected', async (t) => {
  const usage = { type: 'duration', seconds: 4 };
  for (const model of ['unpriced-there', 'whisper-1']) {
    const { cost, line } = await run(t, [updated(model), committed('a'), transcribed('a', usage)]);
    // Ten for each second, and one for its text.
    t.equal(cost, 41 * 1e5, model);
    t.match(line, { inputTokens: 40, outputTokens: 1 });
  }
});

test('a transcript without seconds has the price by the second of its model, whatever the session’s price', async (t) => {
  // Two seconds of sound, or as much as two bytes of text last.
  const heard = { ...tokens(20, 2), input_token_details: { audio_tokens: 20 } };
  const sessions = [{ price: { perSecond: 0.01 } }, { price: { input: 100, output: 100 } }];
  for (const session of sessions) {
    const timed = [updated('timed-there'), committed('a'), transcribed('a', heard)];
    t.equal((await run(t, timed, session)).cost, 2 * 5e8);
    for (const usage of [null, { type: 'duration', seconds: 0 }, { type: 'duration', seconds: 1e9 }]) {
      const unnamed = [updated('timed-there'), committed('a'), transcribed('a', usage)];
      t.equal((await run(t, unnamed, session)).cost, 0.133 * 5e8, JSON.stringify(usage));
    }
  }
});

test('a session’s own model has made what another model of the same name at its upstream could have', async (t) => {
  const events = [updated('m'), committed('a'), transcribed('a', tokens(5, 2))];
  t.equal((await run(t, events)).cost, 7 * 1e5);
});

test('a session that costs nothing has transcripts that cost nothing', async (t) => {
  const events = [updated('dear-there'), committed('a'), transcribed('a', tokens(5, 2))];
  t.equal((await run(t, events, { price: { input: 0 } })).cost, 0);
});
