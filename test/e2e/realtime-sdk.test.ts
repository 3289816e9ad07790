import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OpenAI as OpenAI4 } from 'openai4';
import { OpenAIRealtimeWS as Realtime4 } from 'openai4/beta/realtime/ws';
import { OpenAI as OpenAI6 } from 'openai6';
import { OpenAIRealtimeWS as Realtime6 } from 'openai6/realtime/ws';
import { OpenAI as OpenAI7 } from 'openai7';
import { OpenAIRealtimeWS as Realtime7 } from 'openai7/realtime/ws';
import t, { type Test, test } from 'tap';
import type { WebSocket } from 'ws';
import { startGateway } from '../support/gateway.js';
import { closeOf } from '../support/realtime.js';
import {
  type Event,
  EventLog,
  respond,
  says,
  turnTypes,
  updates,
  writes,
} from '../support/realtime-events.js';

/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');
const ca = readFileSync(`${fixtures}/ca.pem`);

/** What the helpers of all versions have in common. */
interface Helper {
  readonly socket: WebSocket;
  on(name: 'event', listener: (event: Event) => void): unknown;
  on(name: 'error', listener: (error: Error & { readonly error?: Event }) => void): unknown;
  send(event: object): void;
  close(): void;
}

interface Sdk {
  readonly name: string;
  readonly isBeta: boolean;
  open(baseURL: string, apiKey: string, model: string): Helper;
}

const options = { ca };
const sdks: readonly Sdk[] = [
  {
    name: 'openai 4, beta',
    isBeta: true,
    open: (baseURL, apiKey, model) =>
      new Realtime4({ model, options }, new OpenAI4({ baseURL, apiKey })) as unknown as Helper,
  },
  {
    name: 'openai 6',
    isBeta: false,
    open: (baseURL, apiKey, model) =>
      new Realtime6({ model, options }, new OpenAI6({ baseURL, apiKey })) as unknown as Helper,
  },
  {
    name: 'openai 7',
    isBeta: false,
    open: (baseURL, apiKey, model) =>
      new Realtime7({ model, options }, new OpenAI7({ baseURL, apiKey })) as unknown as Helper,
  },
];

// The helpers speak `wss` only.
const gateway = await startGateway(t, {
  demo: 'simulator',
  adapt: (config) => ({
    ...config,
    listen: {
      ...config.listen,
      tls: { cert: `${fixtures}/localhost.pem`, key: `${fixtures}/localhost.key`, fingerprint: '' },
    },
  }),
});
const baseUrl = `${gateway.url.replace('http:', 'https:')}/v1`;

interface Session {
  readonly log: EventLog;
  readonly errors: (Error & { readonly error?: Event })[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  send(...events: readonly object[]): void;
  close(): void;
}

function openWith(
  t: Test,
  sdk: Sdk,
  { apiKey = 'sk-demo', model = 'sim-realtime' }: { readonly apiKey?: string; readonly model?: string } = {},
): Session {
  const helper = sdk.open(baseUrl, apiKey, model);
  t.teardown(() => helper.socket.terminate());
  const log = new EventLog();
  const errors: Session['errors'] = [];
  helper.on('event', (event) => log.push(event));
  helper.on('error', (error) => errors.push(error));
  return {
    log,
    errors,
    closed: closeOf(helper.socket),
    send: (...events) => {
      for (const event of events) helper.send(event);
    },
    close: () => helper.close(),
  };
}

const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

for (const sdk of sdks) {
  const { isBeta } = sdk;
  const itemTypes = isBeta
    ? ['conversation.item.created']
    : ['conversation.item.added', 'conversation.item.done'];
  const text = isBeta ? 'response.text' : 'response.output_text';
  const audio = isBeta ? 'response.audio' : 'response.output_audio';
  const written = [
    'response.content_part.added',
    `${text}.delta`,
    `${text}.done`,
    'response.content_part.done',
  ];

  test(`${sdk.name}: a turn of text`, async (t) => {
    const session = openWith(t, sdk);
    t.match(await session.log.next('session.created'), {
      session: { object: 'realtime.session', model: 'sim-realtime' },
    });
    session.send(writes(isBeta), says('Hello there'), respond);
    const { response } = await session.log.next('response.done');
    await session.log.next('rate_limits.updated');
    t.strictSame(session.log.typesFrom('session.created'), [
      'session.created',
      'conversation.created',
      'session.updated',
      ...itemTypes,
      ...turnTypes(isBeta, written),
    ]);
    const answer = 'Simulated answer to: Hello there';
    const deltas = session.log.all(`${text}.delta`);
    t.ok(deltas.length > 1, 'it comes in pieces');
    t.equal(deltas.map(({ delta }) => delta).join(''), answer);
    t.equal(session.log.all(`${text}.done`)[0]?.text, answer);
    t.match(response, {
      object: 'realtime.response',
      status: 'completed',
      output: [{ role: 'assistant', content: [{ type: isBeta ? 'text' : 'output_text', text: answer }] }],
      usage: { input_tokens: Number, output_tokens: Number },
    });
    session.close();
    t.strictSame(await session.closed, { code: 1000, reason: 'OK' });
    t.strictSame(session.errors, []);
  });

  test(`${sdk.name}: a turn of audio`, async (t) => {
    const session = openWith(t, sdk);
    const samples = Buffer.alloc(4800, 1);
    const append = { type: 'input_audio_buffer.append', audio: samples.toString('base64') };
    await session.log.next('session.created');
    session.send(append, append, { type: 'input_audio_buffer.commit' }, respond);
    const { response } = await session.log.next('response.done');
    await session.log.next('rate_limits.updated');
    const types = session.log.typesFrom('input_audio_buffer.committed');
    const spoken = types.filter((type) => !/audio(?:_transcript)?\.delta$/.test(type));
    t.strictSame(spoken, [
      'input_audio_buffer.committed',
      ...itemTypes,
      ...turnTypes(isBeta, [
        'response.content_part.added',
        `${audio}.done`,
        `${audio}_transcript.done`,
        'response.content_part.done',
      ]),
    ]);
    const answer = 'Simulated answer to: Simulated transcription of 9600 bytes of audio.';
    const heard = session.log.all(`${audio}_transcript.delta`).map(({ delta }) => delta);
    t.equal(heard.join(''), answer);
    const pcm = Buffer.concat(
      session.log.all(`${audio}.delta`).map(({ delta }) => Buffer.from(delta, 'base64')),
    );
    t.equal(pcm.length % 2, 0, 'samples of 16 bits');
    const wave = new Int16Array(pcm.buffer, pcm.byteOffset, pcm.length / 2);
    t.ok(wave.length > 2400, `more than a tenth of a second: ${wave.length} samples`);
    t.ok(
      wave.some((sample) => Math.abs(sample) > 1000),
      'and not silence',
    );
    t.match(response, {
      output: [{ content: [{ type: isBeta ? 'audio' : 'output_audio', transcript: answer }] }],
      usage: { input_token_details: { audio_tokens: 2 } },
    });
    t.strictSame(session.errors, []);
  });

  test(`${sdk.name}: a function is called, and its output answered`, async (t) => {
    const session = openWith(t, sdk);
    await session.log.next('session.created');
    session.send(
      writes(isBeta, { tools: [weather], tool_choice: 'required' }),
      says('Weather in Oslo?'),
      respond,
    );
    const { response } = await session.log.next('response.done');
    await session.log.next('rate_limits.updated');
    const call = 'response.function_call_arguments';
    t.strictSame(
      session.log.typesFrom('response.created'),
      turnTypes(isBeta, [`${call}.delta`, `${call}.done`]),
    );
    const [done] = session.log.all(`${call}.done`);
    t.equal(
      session.log
        .all(`${call}.delta`)
        .map(({ delta }) => delta)
        .join(''),
      done?.arguments,
    );
    t.type(JSON.parse(done?.arguments).city, 'string');
    const [item] = response.output;
    t.match(item, { type: 'function_call', name: 'get_weather', arguments: done?.arguments });
    t.equal(item.call_id, done?.call_id);
    session.send(
      {
        type: 'conversation.item.create',
        item: { type: 'function_call_output', call_id: item.call_id, output: 'sunny' },
      },
      updates(isBeta, { tool_choice: 'auto' }),
      respond,
    );
    const second = await session.log.next('response.done');
    t.match(second.response.output[0].content[0].text, /sunny/);
    t.strictSame(session.errors, []);
  });

  test(`${sdk.name}: an error event is the helper's error, and the session goes on`, async (t) => {
    const session = openWith(t, sdk);
    await session.log.next('session.created');
    session.send({ type: 'session.destroy', event_id: 'mine' });
    await session.log.next('error');
    t.equal(session.errors[0]?.constructor.name, 'OpenAIRealtimeError');
    t.match(session.errors[0]?.error, { type: 'invalid_request_error', param: 'type', event_id: 'mine' });
    session.send(writes(isBeta), says('still here'), respond);
    await session.log.next('response.done');
    t.equal(session.errors.length, 1);
  });

  test(`${sdk.name}: a refusal is an error before anything is open`, async (t) => {
    for (const [wish, status] of [
      [{ apiKey: 'sk-wrong' }, 401],
      [{ model: 'nothing' }, 404],
    ] as const) {
      const session = openWith(t, sdk, wish);
      t.match(await session.closed, { code: 1006 });
      t.match(session.errors[0]?.message, new RegExp(`${status}`));
      t.strictSame(session.log.events, []);
    }
  });
}

t.end();
