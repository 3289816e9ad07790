import { test } from 'tap';
import { advance, failedTask } from '../../../src/video/advance.js';
import { readVendorkBody, vendorkClientFormat } from '../../../src/video/client-formats/vendork.js';
import { context, noResult, png, pngText, result, sampleTask, sayable, start, update } from '../samples.js';

test("the vendor's own body with every member", async (t) => {
  const whole = {
    model_name: 'film',
    prompt: 'A cat',
    negative_prompt: 'dogs',
    cfg_scale: 0.5,
    mode: 'pro',
    camera_control: { type: 'simple', config: { zoom: 3 } },
    aspect_ratio: '9:16',
    duration: '10',
    image: `data:image/png;base64,${pngText}`,
    image_tail: 'https://h/last.png',
    static_mask: pngText,
    dynamic_masks: [{ mask: pngText, trajectories: [{ x: 1, y: 2 }] }],
    sound: 'on',
    watermark_info: { enabled: false },
    callback_url: 'https://client/done',
    external_task_id: 'mine',
  };
  t.same(readVendorkBody(whole, 'image'), {
    format: 'vendork',
    operation: 'image',
    model: 'film',
    prompt: 'A cat',
    negativePrompt: 'dogs',
    image: { kind: 'bytes', bytes: png, mediaType: 'image/png', filename: null, at: 'image' },
    imageTail: { kind: 'url', url: 'https://h/last.png', at: 'image_tail' },
    seconds: 10,
    width: null,
    height: null,
    aspectRatio: '9:16',
    fps: null,
    seed: null,
    count: null,
    cfgScale: 0.5,
    mode: 'pro',
    unreadLength: null,
    fault: null,
    externalId: 'mine',
    body: whole,
    json: null,
    form: null,
  });
});

test('a generic body is taken, too', async (t) => {
  const whole = { model: 'film', prompt: 'A cat', duration: 5, width: 1280, height: 720, fps: 24 };
  t.match(readVendorkBody(whole, 'text'), {
    format: 'vendork',
    operation: 'text',
    model: 'film',
    seconds: 5,
    width: 1280,
    height: 720,
    fps: 24,
    unreadLength: null,
    fault: null,
    externalId: null,
  });
  t.match(readVendorkBody({ model: 'film', image: 'https://h/i.png' }, 'image'), { prompt: null });
  t.match(readVendorkBody({ ...whole, model_name: 'film' }, 'text'), { model: 'film' });
});

test('an image makes it a video from an image at either path, a last one alone too', async (t) => {
  const body = { model: 'film', prompt: 'x' };
  for (const operation of ['text', 'image'] as const) {
    for (const image of [{ image: 'https://h/i' }, { image_tail: 'https://h/i' }])
      t.match(readVendorkBody({ ...body, ...image }, operation), { operation: 'image' });
  }
  t.match(readVendorkBody(body, 'text'), { operation: 'text' });
});

test('a body that is refused where it is said in another format, by the member at fault', async (t) => {
  const body = { model: 'film', prompt: 'x' };
  const cases: ['text' | 'image', object, string, string?][] = [
    ['text', { prompt: 'x' }, 'model', 'missing_parameter'],
    ['text', { ...body, model_name: 'other' }, 'model_name'],
    ['text', { model: 'film' }, 'prompt', 'missing_parameter'],
    ['image', body, 'image', 'missing_parameter'],
    ['image', { ...body, image: '' }, 'image', 'missing_parameter'],
    ['image', { ...body, image: 'no image!' }, 'image'],
    ['text', { ...body, duration: 'long' }, 'duration'],
    ['text', { ...body, cfg_scale: 1.5 }, 'cfg_scale'],
    ['text', { ...body, mode: 7 }, 'mode', 'invalid_request'],
    ['text', { ...body, camera_control: 'x' }, 'camera_control', 'invalid_request'],
    ['text', { ...body, dynamic_masks: ['x'] }, 'dynamic_masks[0]', 'invalid_request'],
    ['text', { ...body, external_task_id: 7 }, 'external_task_id', 'invalid_request'],
    ['text', { ...body, external_task_id: 'x'.repeat(513) }, 'external_task_id'],
  ];
  for (const [operation, wrong, param, kind = 'invalid_value'] of cases)
    t.throws(
      () => sayable(readVendorkBody({ ...wrong }, operation)),
      { name: 'GatewayError', status: 400, kind, param },
      JSON.stringify(wrong).slice(0, 80),
    );
});

test('what only an upstream of the format is asked has its name, its length and whether there is an image', async (t) => {
  const whole = {
    model_name: 'film',
    duration: '5.5',
    cfg_scale: 2,
    image_tail: 'gs://b/a',
    external_task_id: 'x',
  };
  t.match(readVendorkBody(whole, 'image'), {
    operation: 'image',
    model: 'film',
    seconds: 5.5,
    externalId: 'x',
    body: whole,
    fault: { status: 400 },
  });
  for (const wrong of [{ prompt: 'x' }, { model: 'a', model_name: 'b' }, { model: 'a', external_task_id: 7 }])
    t.throws(() => readVendorkBody({ ...wrong }, 'text'), { name: 'GatewayError', status: 400 });
  t.throws(() => readVendorkBody({ model: 'a', prompt: 'x' }, 'image'), {
    name: 'GatewayError',
    param: 'image',
  });
});

const data = {
  task_id: 'video_1',
  task_status: 'submitted',
  task_info: { external_task_id: 'mine' },
  created_at: start,
  updated_at: start,
};
const envelope = { code: 0, message: 'SUCCEED', request_id: 'req_1' };
const task = sampleTask({ externalId: 'mine' });

test('a created task is told in both shapes', async (t) => {
  t.strictSame(JSON.parse(vendorkClientFormat.created(task, context)), {
    ...envelope,
    data,
    task_id: 'video_1',
    status: 'queued',
  });
  t.match(JSON.parse(vendorkClientFormat.created(sampleTask(), context)), { data: { task_info: {} } });
});

test('a task in each state is told in both shapes', async (t) => {
  const shown = (changed: typeof task) => JSON.parse(vendorkClientFormat.shown(changed, context)) as unknown;
  t.strictSame(shown(task), {
    ...envelope,
    data: { ...data, task_status_msg: '' },
    task_id: 'video_1',
    status: 'queued',
  });
  const running = advance(task, update('in_progress'), start + 1);
  t.match(shown(running), {
    data: { task_status: 'processing', updated_at: start + 1 },
    status: 'in_progress',
  });
  t.strictSame(shown(advance(running, update('completed', { result }), start + 2)), {
    ...envelope,
    data: {
      ...data,
      task_status: 'succeed',
      updated_at: start + 2,
      task_status_msg: '',
      task_result: { videos: [{ id: 'video_1', url: 'https://upstream/v.mp4', duration: '8.0' }] },
    },
    task_id: 'video_1',
    status: 'completed',
    url: 'https://upstream/v.mp4',
    format: 'mp4',
    metadata: { duration: 8, fps: 24, width: 1280, height: 720, seed: 7 },
  });
  t.match(shown(advance(running, update('completed', { result: { ...noResult, duration: 5.1 } }), start)), {
    data: { task_result: { videos: [{ url: context.contentUrl, duration: '5.1' }] } },
    url: context.contentUrl,
  });
  const marked = { ...result, watermarkUrl: 'https://upstream/w.mp4' };
  t.match(shown(advance(running, update('completed', { result: marked }), start)), {
    data: {
      task_result: { videos: [{ url: 'https://upstream/v.mp4', watermark_url: marked.watermarkUrl }] },
    },
  });
  const others = [
    { url: 'https://upstream/2.mp4', duration: 5, watermarkUrl: 'https://upstream/w2.mp4' },
    { url: 'https://upstream/3.mp4', duration: null },
  ];
  t.match(shown(advance(running, update('completed', { result: { ...result, others } }), start)), {
    data: {
      task_result: {
        videos: [
          { id: 'video_1', url: 'https://upstream/v.mp4' },
          {
            id: 'video_1_2',
            url: 'https://upstream/2.mp4',
            watermark_url: others[0]?.watermarkUrl,
            duration: '5.0',
          },
          { id: 'video_1_3', url: 'https://upstream/3.mp4', duration: '8.0' },
        ],
      },
    },
  });
  t.match(shown(failedTask(running, { code: '1301', message: 'No.' }, start)), {
    code: 0,
    data: { task_status: 'failed', task_status_msg: 'No.' },
    status: 'failed',
    error: { code: 1301, message: 'No.' },
  });
  t.equal(vendorkClientFormat.missing('x', context), null);
});
