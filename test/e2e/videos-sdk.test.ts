import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { type Client, createClient, raised, type Sdk, sdks } from '../support/sdks/openai.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** The first version of the SDK has no videos. */
const versions = sdks.filter(({ name }) => name !== 'openai 4');
const picture = new File([Buffer.from('\x89PNG\r\n\x1a\nand so on', 'latin1')], 'a.png', {
  type: 'image/png',
});

async function start(t: Test, sdk: Sdk) {
  const path = temporaryFolder(t);
  const demo = await startGateway(t, {
    demo: 'simulator',
    adapt: (config) => ({
      ...config,
      store: { kind: 'embedded', path, taskDays: 1 },
    }),
  });
  return { demo, client: createClient(sdk, demo) };
}

function finished(client: Client, id: string) {
  return eventually(() => client.videos.retrieve(id), {
    fits: ({ status }) => status === 'completed' || status === 'failed',
    everyMs: 10,
  });
}

for (const sdk of versions) {
  test(`${sdk.name}: a video is made, asked for, and downloaded`, async (t) => {
    const { client, demo } = await start(t, sdk);
    const created = Math.floor(Date.now() / 1000);
    const made = await client.videos.create({
      model: 'sim-video' as 'sora-2',
      prompt: '[[video:queued=0 running=0 bytes=300000]] a fox',
      seconds: '8',
      size: '1280x720',
    });
    t.match(made, {
      id: /^video_[0-9a-f]{32}$/,
      object: 'video',
      model: 'sim-video',
      status: 'queued',
      progress: 0,
      seconds: '8',
      size: '1280x720',
    });
    t.ok(made.created_at >= created && made.created_at <= created + 10);
    t.ok(Number(made.expires_at) > made.created_at);
    const video = await finished(client, made.id);
    t.strictSame(
      { ...video, _request_id: undefined },
      {
        id: made.id,
        object: 'video',
        model: 'sim-video',
        status: 'completed',
        progress: 100,
        created_at: made.created_at,
        seconds: '8',
        _request_id: undefined,
      },
    );
    const content = await client.videos.downloadContent(made.id);
    t.equal(content.headers.get('content-type'), 'video/mp4');
    t.equal(content.headers.get('content-length'), '300000');
    const bytes = Buffer.from(await content.arrayBuffer());
    const rest = await client.videos.downloadContent(made.id, {}, { headers: { range: 'bytes=200000-' } });
    t.equal(rest.status, 206);
    t.ok(bytes.subarray(200_000).equals(Buffer.from(await rest.arrayBuffer())));
    for (const [variant, type] of [
      ['video', 'video/mp4'],
      ['thumbnail', 'image/webp'],
      ['spritesheet', 'image/jpeg'],
    ] as const) {
      const given = await client.videos.downloadContent(made.id, { variant });
      t.equal(given.headers.get('content-type'), type);
      t.ok((await given.arrayBuffer()).byteLength > 0);
    }
    t.equal(demo.simulator.state().videosMade, 1);
  });

  test(`${sdk.name}: a reference image goes along as a file, a URL and a data URL`, async (t) => {
    const { client, demo } = await start(t, sdk);
    const asked = { model: 'sim-video' as 'sora-2', prompt: 'a fox' };
    await client.videos.create({ ...asked, input_reference: picture });
    const sent = demo.simulator.lastRequest('POST')?.body.toString('latin1') ?? '';
    const part =
      'name="input_reference"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\nand so on\r\n';
    t.ok(sent.includes(part), sent);
    for (const url of ['https://images.invalid/a.png', 'data:image/png;base64,iVBORw0KGgo=']) {
      await client.videos.create({ ...asked, input_reference: { image_url: url } });
      t.match(demo.simulator.lastRequest('POST')?.body.toString(), url);
    }
    await client.videos.create({ ...asked, input_reference: { file_id: 'file-1' } });
    t.match(demo.simulator.lastRequest('POST')?.body.toString(), 'file-1');
  });

  test(`${sdk.name}: errors are those of the SDK`, async (t) => {
    const { client, demo } = await start(t, sdk);
    const asked = { model: 'sim-video' as 'sora-2', prompt: '[[video:queued=3600000]] a fox' };
    const unknown = await raised(sdk, client.videos.retrieve('video_unknown'));
    t.ok(unknown instanceof sdk.module.NotFoundError);
    t.match(unknown, { status: 404, code: 'not_found', param: 'task_id' });
    const waiting = await client.videos.create(asked);
    const early = await raised(sdk, client.videos.downloadContent(waiting.id));
    t.match(early, { status: 404, code: 'not_found', message: /not finished/ });
    const strange = { variant: 'poster' } as unknown as { variant: 'video' };
    t.match(await raised(sdk, client.videos.downloadContent(waiting.id, strange)), {
      status: 400,
      param: 'variant',
    });
    const wrong = { ...asked, seconds: 'many' as '4' };
    t.match(await raised(sdk, client.videos.create(wrong)), { status: 400, param: 'seconds' });
    const nameless = { ...asked, model: undefined as unknown as 'sora-2' };
    t.match(await raised(sdk, client.videos.create(nameless)), { status: 400, param: 'model' });
    const other = createClient(sdk, demo, { apiKey: 'sk-demo-trial' });
    t.match(await raised(sdk, other.videos.retrieve(waiting.id)), { status: 404, code: 'not_found' });
    t.match(await raised(sdk, other.videos.create(asked)), { status: 404, code: 'model_not_found' });
    const nobody = createClient(sdk, demo, { apiKey: 'sk-nobody' });
    t.match(await raised(sdk, nobody.videos.retrieve(waiting.id)), { status: 401, code: 'invalid_api_key' });
    const limited = { ...asked, prompt: '[[fault:status=429 retry-after=7]] a fox' };
    const error = await raised(sdk, client.videos.create(limited));
    t.ok(error instanceof sdk.module.RateLimitError);
    t.equal(error.headers?.get('retry-after'), '7');
  });
}

for (const sdk of versions.slice(0, 1)) {
  test(`${sdk.name}: a task that failed says why`, async (t) => {
    const { client } = await start(t, sdk);
    const prompt = '[[video:queued=0 running=0 fail=content_policy]] a fox';
    const made = await client.videos.create({ model: 'sim-video' as 'sora-2', prompt });
    const video = await finished(client, made.id);
    t.match(video, { status: 'failed', error: { code: 'content_policy', message: /content policy/ } });
    t.ok(video.progress < 100);
    const refused = await raised(sdk, client.videos.downloadContent(made.id));
    t.match(refused, { status: 404, code: 'not_found', message: /has failed/ });
  });
}
