import { test } from 'tap';
import { type ClientFormat, clientFormats, vendorjAt, vendorkAt } from '../support/media/client-formats.js';
import { ask, type Heard } from '../support/media/gateway.js';
import { ended, make, onlyClientsAsk, startVideos, wires } from '../support/media/videos.js';

const prompt = '[[video:bytes=100000]] a fox';
const createdMembers = {
  compat: {
    id: /^video_[0-9a-f]{32}$/,
    object: 'video',
    status: 'queued',
    progress: 0,
    created_at: Number,
    seconds: String,
    expires_at: Number,
  },
  vendork: {
    code: 0,
    message: 'SUCCEED',
    request_id: /^req_/,
    data: {
      task_id: /^video_/,
      task_status: 'submitted',
      task_info: {},
      created_at: Number,
      updated_at: Number,
    },
    task_id: /^video_/,
    status: 'queued',
  },
  vendorj: {
    code: 10_000,
    message: 'Success',
    data: { task_id: /^video_/ },
    request_id: /^req_/,
    status: 10_000,
    time_elapsed: /^\d+\.\d+ms$/,
  },
  generic: { task_id: /^video_/, status: 'queued' },
};

/** What a finished task says in each format. */
const finished = {
  compat: (id: string, model: string) => ({
    id,
    object: 'video',
    model,
    status: 'completed',
    progress: 100,
    created_at: Number,
    seconds: String,
  }),
  vendork: (id: string) => ({
    code: 0,
    message: 'SUCCEED',
    request_id: /^req_/,
    data: {
      task_id: id,
      task_status: 'succeed',
      task_status_msg: '',
      task_result: { videos: [{ id, url: /^http:/, duration: /^\d+\.\d$/ }] },
      created_at: Number,
      updated_at: Number,
    },
    task_id: id,
    status: 'completed',
    url: /^http:/,
    format: 'mp4',
    metadata: { duration: Number },
  }),
  vendorj: () => ({
    code: 10_000,
    message: 'Success',
    data: { status: 'done', video_url: /^http:/, binary_data_base64: null, image_urls: null, resp_data: '' },
    request_id: /^req_/,
    status: 10_000,
    time_elapsed: /ms$/,
  }),
  generic: (id: string) => ({
    task_id: id,
    status: 'completed',
    url: /^http:/,
    format: 'mp4',
    metadata: { duration: Number },
  }),
};

const sevenFields = ['id', 'object', 'model', 'status', 'progress', 'created_at', 'seconds'];

for (const wire of wires) {
  test(`a task of the ${wire} upstream can be made in each format and read in all`, async (t) => {
    const { gateway, simulator } = await startVideos(t);
    const expected = await ask(gateway, 'GET', '/v1/models');
    t.equal(expected.status, 200);
    const contents = await Promise.all(
      clientFormats.map(async (clientFormat) => {
        const created = await clientFormat.create(gateway, { model: wire, prompt });
        t.equal(created.status, 200, created.text);
        t.match(created.json, createdMembers[clientFormat.format]);
        if (clientFormat.format === 'compat') t.equal(created.json.model, wire);
        const id = clientFormat.idOf(created);
        await ended(clientFormat, gateway, id);
        for (const reader of clientFormats) {
          const { state, heard } = await reader.show(gateway, id);
          t.equal(state, 'completed');
          t.match(heard.json, finished[reader.format](id, wire));
          t.match(heard.headers.get('content-type'), /^application\/json/);
          if (reader.format === 'compat') t.strictSame(Object.keys(heard.json), sevenFields);
        }
        return ask(gateway, 'GET', `/v1/videos/${id}/content`);
      }),
    );
    for (const content of contents) {
      t.equal(content.status, 200);
      t.equal(content.headers.get('content-type'), 'video/mp4');
      t.equal(content.headers.get('content-length'), '100000');
      t.ok(content.bytes.equals(contents[0]?.bytes as Buffer));
      t.equal(content.bytes.length, 100_000);
    }
    t.equal(simulator.state().videosMade, clientFormats.length);
  });
}

test('the bytes of a video are those of its upstream, and it plays', async (t) => {
  const { gateway } = await startVideos(t);
  for (const wire of wires) {
    const body = { model: wire, prompt: 'a fox', duration: 5 };
    const id = String((await ask(gateway, 'POST', '/v1/video/generations', { body })).json.task_id);
    const [generic] = clientFormats.slice(-1) as [ClientFormat];
    const { heard } = await ended(generic, gateway, id);
    const ours = await ask(gateway, 'GET', `/v1/videos/${id}/content`);
    t.equal(ours.bytes.toString('latin1', 4, 8), 'ftyp');
    const url = String(heard.json.url);
    t.equal(url, `${gateway.url}/v1/videos/${id}/content`, 'clients cannot use what the simulator gives');
    const theirs = await ask({ url: '' }, 'GET', url);
    t.ok(theirs.bytes.equals(ours.bytes));
  }
});

test('the real words of the vendors are paths as good as the neutral ones', async (t) => {
  const { gateway } = await startVideos(t);
  const others: readonly ClientFormat[] = [
    vendorkAt('/kling/v1/videos/text2video'),
    vendorjAt('/jimeng/'),
    vendorjAt('/jimeng'),
    vendorjAt('/vendorj'),
  ];
  for (const clientFormat of others) {
    const id = await make(clientFormat, gateway, clientFormat.format, prompt);
    await ended(clientFormat, gateway, id);
    for (const reader of [...others, ...clientFormats])
      t.equal((await reader.show(gateway, id)).state, 'completed');
  }
});

test('image2video makes a video of an image, by URL or base64, in both bodies of the path', async (t) => {
  const { gateway, simulator } = await startVideos(t);
  const data = Buffer.from('\x89PNG\r\n\x1a\nand so on', 'latin1').toString('base64');
  const images = [data, `data:image/png;base64,${data}`, 'https://images.invalid/a.png'];
  for (const prefix of ['/vendork', '/kling']) {
    const clientFormat = vendorkAt(`${prefix}/v1/videos/image2video`);
    for (const image of images) {
      for (const wire of wires) {
        const native = { model_name: wire, prompt: 'a fox', image };
        const generic = { model: wire, prompt: 'a fox', image, duration: 5 };
        for (const body of [native, generic]) {
          const created = await clientFormat.create(gateway, { model: wire, prompt }, { body });
          t.equal(created.status, 200, created.text);
          await ended(clientFormat, gateway, clientFormat.idOf(created));
        }
      }
    }
  }
  t.equal(simulator.state().videosMade, 2 * images.length * wires.length * 2);
});

test('the members of a generic request reach each upstream', async (t) => {
  onlyClientsAsk(t);
  const { gateway, simulator } = await startVideos(t);
  const body = { prompt: 'a fox', duration: '5', width: 1280, height: 720, fps: 24, seed: 7, user: 'me' };
  const sent = async (model: string): Promise<{ target: string; body: string }> => {
    const created = await ask(gateway, 'POST', '/v1/video/generations', { body: { ...body, model } });
    t.equal(created.status, 200, created.text);
    const last = simulator.lastRequest();
    return { target: last?.target ?? '', body: last?.body.toString() ?? '' };
  };
  t.match(JSON.parse((await sent('generic')).body), { ...body, model: 'sim-video' });
  t.match(JSON.parse((await sent('vendork')).body), {
    model_name: 'sim-video',
    duration: '5',
    aspect_ratio: '16:9',
    external_task_id: /^video_/,
  });
  const vendorj = await sent('vendorj');
  t.match(JSON.parse(vendorj.body), { req_key: 'sim-video', frames: 121, aspect_ratio: '16:9', seed: 7 });
  t.equal(vendorj.target, '/vendorj/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31');
  const compat = await sent('compat');
  t.match(compat.body, /name="seconds"\r\n\r\n5\r\n/);
  t.match(compat.body, /name="size"\r\n\r\n1280x720\r\n/);
});

test('a native body is passed on as it is, with the name of the model at the upstream', async (t) => {
  onlyClientsAsk(t);
  const { gateway, simulator } = await startVideos(t);
  const body = {
    model_name: 'vendork',
    prompt: 'a fox',
    negative_prompt: 'a dog',
    cfg_scale: 0.5,
    mode: 'pro',
    aspect_ratio: '9:16',
    duration: '10',
    camera_control: { type: 'simple', config: { zoom: 5 } },
    sound: 'off',
    watermark_info: { enabled: false },
    external_task_id: 'my-own',
  };
  const created: Heard = await ask(gateway, 'POST', '/vendork/v1/videos/text2video', { body });
  t.equal(created.status, 200, created.text);
  t.strictSame(JSON.parse(simulator.lastRequest()?.body.toString() ?? ''), {
    ...body,
    model_name: 'sim-video',
  });
  t.match(created.json, { data: { task_info: { external_task_id: 'my-own' } } });
});
