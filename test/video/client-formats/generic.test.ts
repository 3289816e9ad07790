import { test } from 'tap';
import { advance, failedTask } from '../../../src/video/advance.js';
import { genericClientFormat, readGenericBody } from '../../../src/video/client-formats/generic.js';
import { context, noResult, png, pngText, result, sampleTask, sayable, start, update } from '../samples.js';

const body = { model: 'film', prompt: 'A cat' };

test('a body with every member', async (t) => {
  const whole = {
    ...body,
    image: pngText,
    duration: 5,
    width: 1280,
    height: 720,
    fps: 24,
    seed: 7,
    n: 2,
    response_format: 'url',
    user: 'u',
    metadata: {
      negative_prompt: 'dogs',
      image_tail: 'https://h/last.png',
      aspect_ratio: '16:9',
      mode: 'pro',
      cfg_scale: 0.5,
    },
    more: true,
  };
  t.same(readGenericBody(whole), {
    format: 'generic',
    operation: 'image',
    model: 'film',
    prompt: 'A cat',
    negativePrompt: 'dogs',
    image: { kind: 'bytes', bytes: png, mediaType: 'image/png', filename: null, at: 'image' },
    imageTail: { kind: 'url', url: 'https://h/last.png', at: 'metadata.image_tail' },
    seconds: 5,
    width: 1280,
    height: 720,
    aspectRatio: '16:9',
    fps: 24,
    seed: 7,
    count: 2,
    cfgScale: 0.5,
    mode: 'pro',
    unreadLength: null,
    fault: null,
    externalId: null,
    body: whole,
    json: null,
    form: null,
  });
});

test('a length may be a number or text', async (t) => {
  for (const duration of [5, 5.0, '5', '5.0', '05'])
    t.equal(readGenericBody({ ...body, duration }).seconds, 5, JSON.stringify(duration));
  t.equal(readGenericBody({ ...body, duration: null }).seconds, null);
  for (const duration of [5.5, '5.5']) t.equal(readGenericBody({ ...body, duration }).seconds, 5.5);
  t.match(readGenericBody({ ...body, duration: '' }), { seconds: null, unreadLength: null, fault: null });
  for (const duration of [0, -5, 'five', '-5', 1e300, true, [5], {}])
    t.match(readGenericBody({ ...body, duration }), { seconds: null, unreadLength: 'duration' });
  for (const duration of [0, -5, 'five', '-5', 1e300, true, [5], {}])
    t.throws(
      () => sayable(readGenericBody({ ...body, duration })),
      { name: 'GatewayError', status: 400, param: 'duration' },
      JSON.stringify(duration),
    );
});

test('a text or an image must be there for another format', async (t) => {
  t.match(readGenericBody({ model: 'film', image: 'https://h/i.png' }), { operation: 'image', prompt: null });
  t.match(readGenericBody({ ...body, image: '' }), { operation: 'text', image: null });
  t.throws(() => sayable(readGenericBody({ model: 'film' })), {
    name: 'GatewayError',
    kind: 'missing_parameter',
    param: 'prompt',
  });
  t.throws(() => sayable(readGenericBody({ model: 'film', prompt: '' })), {
    name: 'GatewayError',
    kind: 'invalid_value',
    param: 'prompt',
  });
});

test('a number of videos that cannot be metered is refused whatever the upstream takes', async (t) => {
  t.equal(readGenericBody({ ...body, n: '2' }).count, 2);
  for (const n of [0, -1, 1.5, 1001, 'two', true, [1]])
    t.throws(() => readGenericBody({ ...body, n }), { name: 'GatewayError', status: 400, param: 'n' });
});

test('what only an upstream of the format is asked has what it is routed and metered by', async (t) => {
  const whole = { ...body, duration: '5', n: 2, width: 1280, height: 720, image: 'gs://bucket/a.png' };
  t.match(readGenericBody(whole), {
    operation: 'image',
    image: null,
    seconds: 5,
    count: 2,
    width: 1280,
    body: whole,
    fault: { param: 'image' },
  });
  t.match(readGenericBody({ ...body, cfg_scale: 2 }), { operation: 'text', fault: { param: 'cfg_scale' } });
});

test('a body that is refused where it is said in another format, by the member at fault', async (t) => {
  const cases: [object, string][] = [
    [{ prompt: 'x' }, 'model'],
    [{ ...body, model: '' }, 'model'],
    [{ ...body, prompt: 7 }, 'prompt'],
    [{ ...body, image: 7 }, 'image'],
    [{ ...body, image: 'ftp://h/i' }, 'image'],
    [{ ...body, width: '1280' }, 'width'],
    [{ ...body, height: 0 }, 'height'],
    [{ ...body, fps: 2.5 }, 'fps'],
    [{ ...body, seed: 'x' }, 'seed'],
    [{ ...body, metadata: 'x' }, 'metadata'],
    [{ ...body, metadata: { image_tail: '!' } }, 'metadata.image_tail'],
  ];
  for (const [wrong, param] of cases)
    t.throws(
      () => sayable(readGenericBody({ ...wrong })),
      { name: 'GatewayError', status: 400, param },
      JSON.stringify(wrong),
    );
  t.doesNotThrow(
    () => readGenericBody({ ...body, metadata: { mode: 3, negative_prompt: {} } }),
    'vendors differ',
  );
});

const created = { task_id: 'video_1', status: 'queued' };

test('a task as it is created and in each state', async (t) => {
  const shown = (task: ReturnType<typeof sampleTask>) =>
    JSON.parse(genericClientFormat.shown(task, context)) as unknown;
  t.strictSame(JSON.parse(genericClientFormat.created(sampleTask(), context)), created);
  t.strictSame(shown(sampleTask()), created);
  const running = advance(sampleTask(), update('in_progress'), start);
  t.strictSame(shown(running), { ...created, status: 'in_progress' });
  t.strictSame(shown(advance(running, update('completed', { result }), start)), {
    ...created,
    status: 'completed',
    url: 'https://upstream/v.mp4',
    format: 'mp4',
    metadata: { duration: 8, fps: 24, width: 1280, height: 720, seed: 7 },
  });
  t.strictSame(
    shown(advance(running, update('completed', { result: { ...noResult, duration: 5.2 } }), start)),
    {
      ...created,
      status: 'completed',
      url: context.contentUrl,
      format: 'mp4',
      metadata: { duration: 5.2 },
    },
  );
  const webm = { ...result, format: 'webm' };
  t.match(shown(advance(running, update('completed', { result: webm }), start)), { format: 'webm' });
  t.match(shown(advance(running, update('completed'), start)), { metadata: { duration: 8 } }, 'as asked for');
  t.strictSame(shown(failedTask(running, { code: 'moderation_blocked', message: 'No.' }, start)), {
    ...created,
    status: 'failed',
    error: { code: 400, message: 'No.' },
  });
  t.equal(genericClientFormat.missing('x', context), null);
});
