import { test } from 'tap';
import { advance, failedTask } from '../../../src/video/advance.js';
import {
  readAction,
  readVendorjQuery,
  readVendorjSubmit,
  vendorjClientFormat,
} from '../../../src/video/client-formats/vendorj.js';
import {
  context,
  jpeg,
  jpegText,
  noResult,
  png,
  pngText,
  result,
  sampleTask,
  sayable,
  start,
  update,
} from '../samples.js';

test('the action of a query', async (t) => {
  const read = (text: string) => readAction(new URLSearchParams(text));
  t.equal(read('Action=CVSync2AsyncSubmitTask&Version=2022-08-31'), 'submit');
  t.equal(read('Version=2022-08-31&Action=CVSync2AsyncGetResult'), 'result');
  const cases: [string, string, string][] = [
    ['Version=2022-08-31', 'Action', 'missing_parameter'],
    ['Action=&Version=2022-08-31', 'Action', 'missing_parameter'],
    ['Action=Other&Version=2022-08-31', 'Action', 'invalid_value'],
    ['Action=constructor&Version=2022-08-31', 'Action', 'invalid_value'],
    ['Action=CVSync2AsyncSubmitTask', 'Version', 'missing_parameter'],
    ['Action=CVSync2AsyncSubmitTask&Version=latest', 'Version', 'invalid_value'],
    ['Action=CVSync2AsyncSubmitTask&Version=2022-13-01', 'Version', 'invalid_value'],
    ['Action=CVSync2AsyncSubmitTask&Version=2022-08-31x', 'Version', 'invalid_value'],
  ];
  for (const [query, param, kind] of cases)
    t.throws(() => read(query), { name: 'GatewayError', status: 400, kind, param }, query);
});

test('a body that submits, with every member', async (t) => {
  const whole = {
    req_key: 'film',
    prompt: 'A cat',
    binary_data_base64: [pngText, jpegText],
    seed: 7,
    frames: 121,
    aspect_ratio: '16:9',
    more: 1,
  };
  t.same(readVendorjSubmit(whole), {
    format: 'vendorj',
    operation: 'image',
    model: 'film',
    prompt: 'A cat',
    negativePrompt: null,
    image: { kind: 'bytes', bytes: png, mediaType: 'image/png', filename: null, at: 'binary_data_base64[0]' },
    imageTail: {
      kind: 'bytes',
      bytes: jpeg,
      mediaType: 'image/jpeg',
      filename: null,
      at: 'binary_data_base64[1]',
    },
    seconds: 5,
    width: null,
    height: null,
    aspectRatio: '16:9',
    fps: null,
    seed: 7,
    count: null,
    cfgScale: null,
    mode: null,
    unreadLength: null,
    fault: null,
    externalId: null,
    body: whole,
    json: null,
    form: null,
  });
});

test('what the members of a submission mean', async (t) => {
  const read = (changes: object) => readVendorjSubmit({ req_key: 'film', prompt: 'x', ...changes });
  t.match(read({}), { operation: 'text', seconds: null, seed: null, image: null });
  t.match(read({ seed: -1, aspect_ratio: '' }), { seed: null, aspectRatio: null });
  t.match(read({ frames: 241 }), { seconds: 10 });
  t.match(read({ frames: 1 }), { seconds: 1 });
  t.match(read({ frames: 100 }), { seconds: 4 });
  t.match(read({ frames: '121' }), { seconds: 5 });
  t.match(read({ prompt: null, image_urls: ['https://h/1', 'https://h/2'] }), {
    operation: 'image',
    prompt: null,
    image: { url: 'https://h/1', at: 'image_urls[0]' },
    imageTail: { url: 'https://h/2', at: 'image_urls[1]' },
  });
  t.match(read({ binary_data_base64: [], image_urls: null }), { operation: 'text' });
});

test('a submission that names no model is for the default one', async (t) => {
  for (const body of [{ prompt: 'x' }, { prompt: 'x', req_key: '' }, { prompt: 'x', req_key: null }])
    t.match(readVendorjSubmit(body, 'film'), { model: 'film' });
  t.match(readVendorjSubmit({ prompt: 'x', req_key: 'own' }, 'film'), { model: 'own' });
});

test('a submission that is refused where it is said in another format, by the member at fault', async (t) => {
  const body = { req_key: 'film', prompt: 'x' };
  const cases: [object, string][] = [
    [{ prompt: 'x' }, 'req_key'],
    [{ ...body, req_key: '' }, 'req_key'],
    [{ req_key: 'film' }, 'prompt'],
    [{ req_key: 'film', prompt: '' }, 'prompt'],
    [{ ...body, prompt: 7 }, 'prompt'],
    [{ ...body, binary_data_base64: pngText }, 'binary_data_base64'],
    [{ ...body, binary_data_base64: [pngText, 7] }, 'binary_data_base64[1]'],
    [{ ...body, binary_data_base64: ['!'] }, 'binary_data_base64[0]'],
    [{ ...body, image_urls: ['https://h', 'ftp://h'] }, 'image_urls[1]'],
    [{ ...body, seed: 'x' }, 'seed'],
    [{ ...body, frames: 0 }, 'frames'],
    [{ ...body, frames: 1_000_001 }, 'frames'],
    [{ ...body, frames: 'many' }, 'frames'],
    [{ ...body, aspect_ratio: 7 }, 'aspect_ratio'],
  ];
  for (const [wrong, param] of cases)
    t.throws(
      () => sayable(readVendorjSubmit({ ...wrong })),
      { name: 'GatewayError', status: 400, param },
      JSON.stringify(wrong),
    );
});

test('what only an upstream of the format is asked has its model and its length', async (t) => {
  const passed = { format: 'vendorj', model: 'film', operation: 'text', seconds: 5, fault: { status: 400 } };
  t.match(readVendorjSubmit({ req_key: 'film', frames: 121 }), { ...passed, fault: { param: 'prompt' } });
  t.match(readVendorjSubmit({ req_key: 'film', frames: 121, image_urls: ['gs://b/a'] }), {
    ...passed,
    operation: 'image',
  });
  t.match(readVendorjSubmit({ frames: -1 }, 'film'), { ...passed, seconds: null, unreadLength: 'frames' });
  for (const wrong of [{}, { req_key: '' }, { req_key: 7 }])
    t.throws(() => readVendorjSubmit({ ...wrong }), { name: 'GatewayError', param: 'req_key' });
});

test('a body that asks for a task', async (t) => {
  t.same(readVendorjQuery({ req_key: 'film', task_id: 'video_1', req_json: '{}' }), { id: 'video_1' });
  t.same(readVendorjQuery({ task_id: 'video_1' }), { id: 'video_1' });
  t.throws(() => readVendorjQuery({ req_key: 'film' }), {
    name: 'GatewayError',
    kind: 'missing_parameter',
    param: 'task_id',
  });
  for (const [wrong, param] of [
    [{ task_id: 7 }, 'task_id'],
    [{ task_id: '' }, 'task_id'],
    [{ task_id: 'x', req_key: 7 }, 'req_key'],
    [{ task_id: 'x', req_json: {} }, 'req_json'],
  ] as const)
    t.throws(
      () => readVendorjQuery(wrong),
      { name: 'GatewayError', status: 400, param },
      JSON.stringify(wrong),
    );
});

const envelope = {
  code: 10000,
  message: 'Success',
  request_id: 'req_1',
  status: 10000,
  time_elapsed: '12.3ms',
};
const data = { binary_data_base64: null, image_urls: null, resp_data: '' };

test('a task as it is created, in each state, and gone', async (t) => {
  const shown = (task: ReturnType<typeof sampleTask>) =>
    JSON.parse(vendorjClientFormat.shown(task, context)) as unknown;
  t.strictSame(JSON.parse(vendorjClientFormat.created(sampleTask(), context)), {
    ...envelope,
    data: { task_id: 'video_1' },
  });
  t.strictSame(shown(sampleTask()), { ...envelope, data: { ...data, status: 'in_queue' } });
  const running = advance(sampleTask(), update('in_progress'), start);
  t.strictSame(shown(running), { ...envelope, data: { ...data, status: 'generating' } });
  t.strictSame(shown(advance(running, update('completed', { result }), start)), {
    ...envelope,
    data: { ...data, status: 'done', video_url: 'https://upstream/v.mp4' },
  });
  t.match(shown(advance(running, update('completed', { result: noResult }), start)), {
    data: { video_url: context.contentUrl },
  });
  t.strictSame(JSON.parse(vendorjClientFormat.missing('x', context) ?? ''), {
    ...envelope,
    data: { ...data, status: 'not_found' },
  });
});

test('a failed task has another code than that of success', async (t) => {
  const failed = (code: string) =>
    JSON.parse(
      vendorjClientFormat.shown(failedTask(sampleTask(), { code, message: 'No.' }, start), context),
    ) as unknown;
  t.strictSame(failed('50412'), {
    ...envelope,
    code: 50412,
    status: 50412,
    message: 'No.',
    data: { ...data, status: 'done' },
  });
  t.match(failed('moderation_blocked'), { code: 50511, status: 50511 });
  t.match(failed('generation_failed'), { code: 50500, status: 50500 });
  t.match(failed('10000'), { code: 50500 });
});
