import { test } from 'tap';
import { pngImage } from '../../src/simulator/media/png.js';
import { speech } from '../../src/simulator/media/speech.js';
import { startGateway, testKey } from '../support/gateway.js';
import { connect, create } from '../support/responses-socket.js';
import { type Client, collect, raised, type Sdk, sdks } from '../support/sdks/openai.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const messages = [{ role: 'user' as const, content: 'weather in Oslo' }];
const answerText = 'Simulated answer to: weather in Oslo';
const apiVersion = '2024-10-21';
const demoKey = 'sk-demo';
const spoken = Buffer.concat([...speech({ text: 'Good morning.', voice: 'alloy', format: 'mp3', speed: 1 })]);

interface AzureOptions {
  readonly apiKey?: string;
  /** In place of the key. */
  readonly azureADTokenProvider?: () => Promise<string>;
  /** Name of the deployment that all calls are for; else each names its own. */
  readonly deployment?: string;
}

/** A client of a team that comes from Azure: its endpoint and its key are the gateway's. */
function azureClient({ module }: Sdk, endpoint: string, options: AzureOptions = { apiKey: demoKey }): Client {
  return new module.AzureOpenAI({ endpoint, apiVersion, maxRetries: 0, ...options });
}

for (const sdk of sdks) {
  test(`${sdk.name}: a client of Azure's calls with its key and its deployments`, async (t) => {
    const { url, simulator } = await startGateway(t, { demo: 'simulator' });
    const client = azureClient(sdk, url);
    const told = await client.chat.completions.create({ model: 'sim-text', messages });
    t.equal(told.choices[0]?.message.content, answerText);
    const heard = simulator.lastRequest();
    t.equal(heard?.target, '/v1/chat/completions', 'the query is for the gateway');
    t.notOk(heard?.rawHeaders.some((text) => text.toLowerCase() === 'api-key' || text.includes(demoKey)));
    const stream = await client.chat.completions.create({ model: 'sim-text', messages, stream: true });
    const chunks = await collect(stream);
    t.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), answerText);
    t.equal((await client.responses.create({ model: 'sim-text', input: 'hi' })).status, 'completed');
    t.match(await client.embeddings.create({ model: 'sim-embedding', input: 'a' }), { data: [{ index: 0 }] });
    t.equal((await client.completions.create({ model: 'sim-text', prompt: 'a' })).choices.length, 1);
    t.ok((await client.images.generate({ model: 'sim-image', prompt: 'a' })).data?.[0]);
    const file = await sdk.module.toFile(spoken, 'talk.mp3', { type: 'audio/mpeg' });
    t.match(await client.audio.transcriptions.create({ model: 'sim-transcribe', file }), { text: String });
    const sound = await client.audio.speech.create({ model: 'sim-speech', input: 'a', voice: 'alloy' });
    t.ok((await sound.arrayBuffer()).byteLength > 0);
    t.equal((await client.models.list()).data.length, 9);
  });

  test(`${sdk.name}: the deployment of a client of Azure's counts, whatever its bodies name`, async (t) => {
    const { url, simulator } = await startGateway(t, { demo: 'simulator' });
    const bodies = () => simulator.lastRequest()?.body.toString() ?? '';
    const text = azureClient(sdk, url, { apiKey: demoKey, deployment: 'sim-text' });
    for (const model of ['', 'gpt-6-sol']) {
      const { choices } = await text.chat.completions.create({ model, messages });
      t.equal(choices[0]?.message.content, answerText);
      t.match(JSON.parse(bodies()), { model: 'sim-text' });
    }
    const images = azureClient(sdk, url, { apiKey: demoKey, deployment: 'sim-image' });
    t.ok((await images.images.generate({ prompt: 'a' })).data?.[0]);
    t.match(JSON.parse(bodies()), { model: 'sim-image' });
    const audio = azureClient(sdk, url, { apiKey: demoKey, deployment: 'sim-transcribe' });
    const file = await sdk.module.toFile(spoken, 'talk.mp3', { type: 'audio/mpeg' });
    t.match(await audio.audio.transcriptions.create({ model: '', file }), { text: String });
    t.match(bodies(), /name="model"\r\n\r\nsim-transcribe\r\n/);
  });

  test(`${sdk.name}: a client of Azure's gets its errors as it knows them, and signs in with a token, too`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const { AuthenticationError, NotFoundError } = sdk.module;
    const call = { model: 'sim-text', messages };
    const provided = azureClient(sdk, url, { azureADTokenProvider: () => Promise.resolve(demoKey) });
    t.equal((await provided.chat.completions.create(call)).choices.length, 1);
    const stranger = azureClient(sdk, url, { apiKey: 'sk-nobody' });
    const refused = await raised(sdk, stranger.chat.completions.create(call));
    t.ok(refused instanceof AuthenticationError);
    t.match(refused, { code: 'invalid_api_key' });
    const client = azureClient(sdk, url);
    const unknown = await raised(sdk, client.chat.completions.create({ model: 'none', messages }));
    t.ok(unknown instanceof NotFoundError);
    t.match(unknown, { code: 'model_not_found', param: 'model' });
    const trial = azureClient(sdk, url, { apiKey: 'sk-demo-trial' });
    const closed = await raised(sdk, trial.embeddings.create({ model: 'sim-embedding', input: 'a' }));
    t.match(closed, { status: 404, code: 'model_not_found' }, 'a model of another group is none');
  });
}

const formOf = (fields: Readonly<Record<string, Blob | string>>): FormData => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
};

test("a form below a deployment need not name the model: the upstream is told the deployment's", async (t) => {
  const { url, simulator } = await startGateway(t, { demo: 'simulator' });
  const post = (path: string, body: FormData): Promise<Response> =>
    fetch(`${url}/openai/deployments/${path}?api-version=${apiVersion}`, {
      method: 'POST',
      headers: { 'api-key': demoKey },
      body,
    });
  const timesNamed = (): number | undefined =>
    simulator
      .lastRequest()
      ?.body.toString('latin1')
      .match(/name="model"/g)?.length;
  const sound = new File([spoken], 'talk.mp3', { type: 'audio/mpeg' });
  const long = new File([Buffer.alloc(3 << 20, spoken)], 'long.mp3', { type: 'audio/mpeg' });
  for (const file of [sound, long]) {
    const answer = await post('sim-transcribe/audio/transcriptions', formOf({ file }));
    t.match([answer.status, await answer.json()], [200, { text: String }]);
    t.equal(timesNamed(), 1);
    t.match(simulator.lastRequest()?.body.toString('latin1'), /name="model"\r\n\r\nsim-transcribe\r\n--/);
  }
  const image = new File([pngImage({ width: 8, height: 8, seed: 'a' })], 'a.png', { type: 'image/png' });
  const named: readonly Record<string, string>[] = [{}, { model: 'another' }];
  for (const more of named) {
    const answer = await post('sim-image/images/edits', formOf({ prompt: 'a', image, ...more }));
    t.match([answer.status, await answer.json()], [200, { data: [{}] }]);
    t.equal(timesNamed(), 1);
    t.match(simulator.lastRequest()?.body.toString('latin1'), /name="model"\r\n\r\nsim-image\r\n--/);
  }
});

test('a body below a deployment that is no JSON is refused', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const answer = await fetch(`${url}/openai/deployments/sim-text/chat/completions`, {
    method: 'POST',
    headers: { 'api-key': demoKey, 'content-type': 'application/json' },
    body: '{"model": total nonsense "x" , "messages":[{"role":"user","content":"hi"}]}',
  });
  t.match([answer.status, await answer.json()], [400, { error: { type: 'invalid_request_error' } }]);
});

test('a socket for responses takes the key of a client of Azure, with each of its messages', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const raw = await connect(t, url, { 'api-key': demoKey });
  raw.send(create({ input: 'hi' }));
  t.match((await raw.answer()).at(-1), { type: 'response.completed' });
});

test("a form that names the target's own model below a deployment of another name keeps it", async (t) => {
  const upstream = await startRawUpstream(
    t,
    jsonAnswer(200, '{"text":"a","data":[{"url":"http://x/a.png"}]}'),
  );
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        ours: { protocols: ['audio', 'images'], targets: [{ upstream: 'u0', model: 'theirs' }] },
      },
    },
  });
  const file = new File([spoken], 'talk.mp3', { type: 'audio/mpeg' });
  const image = new File([pngImage({ width: 8, height: 8, seed: 'a' })], 'a.png', { type: 'image/png' });
  for (const [operation, fields] of [
    ['audio/transcriptions', { file }],
    ['images/edits', { prompt: 'a', image }],
  ] as const)
    for (const model of ['theirs', 'ours', 'another', null]) {
      const answer = await fetch(`${gateway.url}/openai/deployments/ours/${operation}`, {
        method: 'POST',
        headers: { 'api-key': testKey },
        body: formOf(model === null ? fields : { ...fields, model }),
      });
      t.equal(answer.status, 200, await answer.text());
      const sent = upstream.requests.at(-1)?.body.toString('latin1') ?? '';
      t.strictSame(sent.match(/(?<=name="model"\r\n\r\n).*/g), ['theirs'], `${operation} with ${model}`);
    }
});
