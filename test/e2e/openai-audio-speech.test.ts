import { type Test, test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { type Client, createClient, raised, type Sdk, sdks } from '../support/sdks/openai.js';
import { startRawUpstream } from '../support/upstream.js';

type Speech = Parameters<Client['audio']['speech']['create']>[0];
type Fields = Readonly<Record<string, unknown>>;

const input = 'Good morning, everybody.';
const formats = [
  {
    format: 'mp3',
    type: 'audio/mpeg',
    begins: (bytes: Buffer) => bytes[0] === 0xff || bytes.subarray(0, 3).equals(Buffer.from('ID3')),
  },
  { format: 'wav', type: 'audio/wav', begins: (bytes: Buffer) => bytes.toString('latin1', 0, 4) === 'RIFF' },
  {
    format: 'flac',
    type: 'audio/flac',
    begins: (bytes: Buffer) => bytes.toString('latin1', 0, 4) === 'fLaC',
  },
  {
    format: 'pcm',
    type: 'audio/pcm',
    begins: (bytes: Buffer) => bytes.length > 1000 && bytes.length % 2 === 0,
  },
];

async function start(t: Test, sdk: Sdk) {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const client = createClient(sdk, gateway);
  const speak = (fields: Fields = {}) =>
    client.audio.speech.create({
      model: 'sim-speech',
      input,
      voice: 'alloy',
      ...fields,
    } as unknown as Speech) as unknown as Promise<Response>;
  return { gateway, client, speak };
}

for (const sdk of sdks) {
  test(`${sdk.name}: speech in the formats that the simulator has`, async (t) => {
    const { gateway, speak } = await start(t, sdk);
    for (const { format, type, begins } of formats) {
      const answer = await speak({ response_format: format, instructions: 'calmly', speed: 1.25 });
      t.equal(answer.headers.get('content-type'), type);
      t.equal(answer.headers.get('transfer-encoding'), 'chunked');
      const bytes = Buffer.from(await answer.arrayBuffer());
      t.ok(begins(bytes), `${format}: ${bytes.length} bytes`);
      const direct = await fetch(`${gateway.simulator.url}/audio/speech`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'sim-speech',
          input,
          voice: 'alloy',
          response_format: format,
          instructions: 'calmly',
          speed: 1.25,
        }),
      });
      t.ok(bytes.equals(Buffer.from(await direct.arrayBuffer())), 'the same bytes as without the gateway');
    }
    t.equal((await speak()).headers.get('content-type'), 'audio/mpeg', 'mp3 unless said otherwise');
    t.equal((await speak({ voice: { id: 'voice_123' } })).status, 200);
    t.equal((await speak({ response_format: null, speed: null, stream_format: 'audio' })).status, 200);
    t.equal((await speak({ input: 'é'.repeat(4096), speed: 4, response_format: 'pcm' })).status, 200);
    t.equal((await speak({ x_new: { a: [1] } })).status, 200, 'unknown fields pass');
  });

  test(`${sdk.name}: speech as events`, async (t) => {
    const { speak } = await start(t, sdk);
    const bytes = Buffer.from(await (await speak({ response_format: 'wav' })).arrayBuffer());
    const answer = await speak({ response_format: 'wav', stream_format: 'sse' });
    t.match(answer.headers.get('content-type'), /^text\/event-stream/);
    const events = [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => JSON.parse(data as string) as { type: string; audio?: string },
    );
    const deltas = events.slice(0, -1);
    t.ok(deltas.every(({ type }) => type === 'speech.audio.delta'));
    t.ok(Buffer.concat(deltas.map(({ audio }) => Buffer.from(audio ?? '', 'base64'))).equals(bytes));
    t.match(events.at(-1), { type: 'speech.audio.done', usage: { total_tokens: Number } });
  });

  test(`${sdk.name}: what is wrong with a speech request is an error with its parameter`, async (t) => {
    const { gateway, speak } = await start(t, sdk);
    const { BadRequestError, NotFoundError, AuthenticationError } = sdk.module;
    const wrong: readonly (readonly [Fields, string])[] = [
      [{ model: undefined }, 'model'],
      [{ model: 7 }, 'model'],
      [{ input: undefined }, 'input'],
      [{ input: '' }, 'input'],
      [{ input: ['a'] }, 'input'],
      [{ input: 'x'.repeat(4097) }, 'input'],
      [{ voice: undefined }, 'voice'],
      [{ voice: '' }, 'voice'],
      [{ voice: 7 }, 'voice'],
      [{ response_format: 'ogg' }, 'response_format'],
      [{ speed: 0.2 }, 'speed'],
      [{ speed: 5 }, 'speed'],
      [{ speed: '1' }, 'speed'],
      [{ stream_format: 'events' }, 'stream_format'],
      [{ instructions: 7 }, 'instructions'],
    ];
    for (const [fields, param] of wrong) {
      const error = await raised(sdk, speak(fields));
      t.ok(error instanceof BadRequestError, `${JSON.stringify(fields).slice(0, 80)}: ${error.message}`);
      t.match(error, { status: 400, param }, JSON.stringify(fields).slice(0, 80));
    }
    t.ok((await raised(sdk, speak({ voice: {} }))) instanceof BadRequestError);
    t.match(await raised(sdk, speak({ model: 'none' })), { status: 404, code: 'model_not_found' });
    t.ok((await raised(sdk, speak({ model: 'sim-text' }))) instanceof NotFoundError);
    const stranger = createClient(sdk, gateway, { apiKey: 'sk-nobody' });
    const refused = raised(sdk, stranger.audio.speech.create({ model: 'sim-speech', input, voice: 'alloy' }));
    t.ok((await refused) instanceof AuthenticationError);
  });
}

test('speech arrives as it is made', async (t) => {
  const sdk = sdks.at(-1) as Sdk;
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(
      'HTTP/1.1 200 OK\r\ncontent-type: audio/opus\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n',
    ),
  );
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: { models: { m: { protocols: ['audio'], targets: [{ upstream: 'u0' }] } } },
  });
  const client = createClient(sdk, gateway, { apiKey: testKey });
  const answer = (await client.audio.speech.create({
    model: 'm',
    input: '\u{1f98a}'.repeat(4096),
    voice: 'alloy',
    response_format: 'opus',
  })) as unknown as Response;
  t.equal(answer.headers.get('content-type'), 'audio/opus');
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  t.equal(Buffer.from((await reader.read()).value ?? []).toString(), 'first');
  const { socket } = await upstream.request(0);
  socket.write('4\r\nlast\r\n0\r\n\r\n');
  t.equal(Buffer.from((await reader.read()).value ?? []).toString(), 'last');
  t.ok((await reader.read()).done);

  const cut = (await client.audio.speech.create({
    model: 'm',
    input,
    voice: 'alloy',
  })) as unknown as Response;
  (await upstream.request(1)).socket.destroy();
  await t.rejects(cut.arrayBuffer(), 'an answer that breaks off is no whole one');
});
