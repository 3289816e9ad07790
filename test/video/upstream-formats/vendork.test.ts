import { test } from 'tap';
import { readVendorkBody } from '../../../src/video/client-formats/vendork.js';
import { vendorkUpstreamFormat } from '../../../src/video/upstream-formats/vendork.js';
import { answer, jsonBody, noResult, pngText, taskAt, update } from '../samples.js';

test("the client's own members go on, and the task is named", async (t) => {
  const body = {
    model_name: 'film',
    prompt: 'x',
    camera_control: { a: 1 },
    callback_url: 'https://c',
    more: 1,
  };
  const call = vendorkUpstreamFormat.create(readVendorkBody(body, 'text'), 'film-1', 'video_1');
  t.match(call, { method: 'POST', path: '/v1/videos/text2video', contentType: 'application/json' });
  t.strictSame(jsonBody(call), { ...body, model_name: 'film-1', external_task_id: 'video_1' });
  const named = readVendorkBody({ ...body, external_task_id: 'mine' }, 'text');
  t.match(jsonBody(vendorkUpstreamFormat.create(named, 'film-1', 'video_1')), { external_task_id: 'mine' });
});

test("a generic body gets the vendor's own members beside its own", async (t) => {
  const body = { model: 'film', prompt: 'x', width: 1280, height: 720, duration: 5 };
  t.strictSame(jsonBody(vendorkUpstreamFormat.create(readVendorkBody(body, 'text'), 'film-1', 'video_1')), {
    ...body,
    model: 'film-1',
    model_name: 'film-1',
    duration: '5',
    aspect_ratio: '16:9',
    external_task_id: 'video_1',
  });
  const image = { ...body, image: ` data:image/png;base64,${pngText}` };
  t.strictSame(jsonBody(vendorkUpstreamFormat.create(readVendorkBody(image, 'image'), 'film-1', 'video_1')), {
    ...body,
    image: pngText,
    model: 'film-1',
    model_name: 'film-1',
    duration: '5',
    external_task_id: 'video_1',
  });
});

test('a length is written as the vendor writes it', async (t) => {
  for (const [duration, sent] of [
    ['05', '5'],
    ['5.0', '5'],
    ['5.50', '5.5'],
    ['5', '5'],
    [5, '5'],
    ['long', 'long'],
  ] as const) {
    const request = readVendorkBody({ model_name: 'film', prompt: 'x', duration }, 'text');
    t.equal(jsonBody(vendorkUpstreamFormat.create(request, 'film-1', 'video_1')).duration, sent);
  }
});

test('a task is asked for where it was made', async (t) => {
  t.match(vendorkUpstreamFormat.poll(taskAt('vendork')), {
    method: 'GET',
    path: '/v1/videos/text2video/up-1',
    body: [],
  });
  t.match(vendorkUpstreamFormat.poll(taskAt('vendork', { operation: 'image' })), {
    path: '/v1/videos/image2video/up-1',
  });
  t.equal(vendorkUpstreamFormat.content(taskAt('vendork'), 'video'), null);
});

test('the answer to a creation has the id of the task, and its state if it says one', async (t) => {
  const read = (value: unknown) => vendorkUpstreamFormat.readCreated(answer(value));
  const data = { task_id: 'up-1', task_status: 'submitted', created_at: 1, updated_at: 1 };
  t.same(read({ code: 0, message: 'SUCCEED', request_id: 'r', data }), {
    id: 'up-1',
    update: update('queued'),
  });
  t.same(read({ data: { task_id: 'up-1' } }), { id: 'up-1', update: null });
  t.same(read({ task_id: 'up-1', status: 'queued' }), { id: 'up-1', update: update('queued') }, 'generic');
  t.throws(() => read({ code: 0, data: null }), { name: 'GatewayError', kind: 'upstream_error' });
});

test('a number other than 0 in the answer to a creation', async (t) => {
  const cases: [code: number | string, status: number, code: string | null][] = [
    [1000, 502, 'upstream_error'],
    [1004, 502, 'upstream_error'],
    [1102, 502, 'upstream_error'],
    [1103, 502, 'upstream_error'],
    [1200, 400, null],
    [1201, 400, null],
    [1203, 404, 'not_found'],
    [1300, 400, 'content_policy_violation'],
    [1301, 400, 'content_policy_violation'],
    [1302, 429, 'rate_limit_exceeded'],
    ['1303', 429, 'rate_limit_exceeded'],
    [1304, 502, 'upstream_error'],
    [5000, 502, 'upstream_error'],
    [5001, 503, 'overloaded'],
    [5002, 504, 'upstream_timeout'],
    [-1, 502, 'upstream_error'],
  ];
  for (const [native, status, code] of cases) {
    const isHidden = status === 502 && native !== 5000 && native !== -1;
    const message = isHidden ? /gateway's account/ : /^Their words$/;
    t.throws(
      () =>
        vendorkUpstreamFormat.readCreated(
          answer({ code: native, message: 'Their words', data: { task_id: 'x' } }),
        ),
      { name: 'GatewayError', status, code, message, source: 'upstream' },
      String(native),
    );
  }
});

test('a polled task has its state, its progress and its result', async (t) => {
  const read = (data: unknown, more = {}) =>
    vendorkUpstreamFormat.readPolled(answer({ code: 0, data, ...more }));
  t.same(read({ task_status: 'submitted' }), update('queued'));
  t.same(read({ task_status: 'processing' }), update('in_progress'));
  t.same(
    read({
      task_status: 'succeed',
      updated_at: 1_700_000_009_000,
      task_result: { videos: [{ id: 'v', url: 'https://h/v.mp4', duration: '5.0' }] },
    }),
    update('completed', {
      completedAt: 1_700_000_009_000,
      result: { ...noResult, url: 'https://h/v.mp4', duration: 5, others: [] },
    }),
  );
  const marked = [{ id: 'v', url: 'https://h/v.mp4', watermark_url: 'https://h/w.mp4', duration: '5.0' }];
  t.match(read({ task_status: 'succeed', task_result: { videos: marked } }), {
    result: { url: 'https://h/v.mp4', watermarkUrl: 'https://h/w.mp4' },
  });
  const several = [
    ...marked,
    { url: 'ftp://h' },
    7,
    { ...marked[0], duration: null },
    { url: 'https://h/3.mp4' },
  ];
  t.strictSame(read({ task_status: 'succeed', task_result: { videos: several } }).result?.others, [
    { url: 'https://h/v.mp4', duration: null, watermarkUrl: 'https://h/w.mp4' },
    { url: 'https://h/3.mp4', duration: null },
  ]);
  t.match(read({ task_status: 'succeed', task_result: { videos: [] } }), { result: { url: null } });
  t.same(
    read({ task_status: 'failed', task_status_msg: 'Risk control' }),
    update('failed', { error: { code: 'generation_failed', message: 'Risk control' } }),
  );
  t.same(
    read({ task_status: 'failed', task_status_msg: 'x' }, { error: { code: 1301, message: 'No.' } }),
    update('failed', { error: { code: '1301', message: 'No.' } }),
  );
  t.same(read(null, { status: 'in_progress' }), update('in_progress'), 'generic');
  t.throws(() => read({ task_status: 'odd' }), { name: 'GatewayError', kind: 'upstream_error' });
  t.throws(() => read({}), { name: 'GatewayError', kind: 'upstream_error' });
});

test('a number other than 0 in the answer about a task', async (t) => {
  const read = (code: number, data: unknown = null) =>
    vendorkUpstreamFormat.readPolled(answer({ code, message: 'Their words', data }));
  t.match(read(1301), { state: 'failed', error: { code: '1301', message: 'Their words' } });
  t.match(read(5000, { task_status: 'failed', task_status_msg: 'No.' }), {
    state: 'failed',
    error: { message: 'No.' },
  });
  const thrown: [number, string][] = [
    [1000, 'upstream_error'],
    [1202, 'not_found'],
    [1203, 'not_found'],
    [1303, 'rate_limit_exceeded'],
    [5000, 'upstream_error'],
    [5001, 'overloaded'],
  ];
  for (const [code, kind] of thrown) t.throws(() => read(code), { name: 'GatewayError', kind }, String(code));
});
