import { test } from 'tap';
import { readVendorjSubmit } from '../../../src/video/client-formats/vendorj.js';
import { vendorjUpstreamFormat } from '../../../src/video/upstream-formats/vendorj.js';
import { answer, jsonBody, noResult, taskAt, update } from '../samples.js';

test("the client's own members go on", async (t) => {
  const body = { req_key: 'film', prompt: 'x', frames: 100, seed: -1, aspect_ratio: 'adaptive', more: {} };
  const call = vendorjUpstreamFormat.create(readVendorjSubmit(body), 'film-1', 'video_1');
  t.match(call, {
    method: 'POST',
    path: '/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31',
    contentType: 'application/json',
  });
  t.strictSame(jsonBody(call), { ...body, req_key: 'film-1' });
});

test('a task is asked for with a body', async (t) => {
  const call = vendorjUpstreamFormat.poll(taskAt('vendorj'));
  t.match(call, { method: 'POST', path: '/?Action=CVSync2AsyncGetResult&Version=2022-08-31' });
  t.strictSame(jsonBody(call), { req_key: 'film-1', task_id: 'up-1' });
  t.equal(vendorjUpstreamFormat.content(taskAt('vendorj'), 'video'), null);
});

test('the answer to a creation has the id of the task, and its state if it says one', async (t) => {
  const read = (value: unknown) => vendorjUpstreamFormat.readCreated(answer(value));
  t.same(read({ code: 10000, message: 'Success', data: { task_id: '7392' }, status: 10000 }), {
    id: '7392',
    update: null,
  });
  t.throws(() => read({ code: 10000, data: null }), { name: 'GatewayError', kind: 'upstream_error' });
});

test('a number other than 10000 in the answer to a creation', async (t) => {
  const cases: [code: number | string, status: number, code: string | null][] = [
    [50200, 400, null],
    [50215, 400, null],
    [50411, 400, 'content_policy_violation'],
    ['50412', 400, 'content_policy_violation'],
    [50413, 400, 'content_policy_violation'],
    [50511, 400, 'content_policy_violation'],
    [50429, 429, 'rate_limit_exceeded'],
    [50430, 429, 'rate_limit_exceeded'],
    [50500, 502, 'upstream_error'],
    [50401, 502, 'upstream_error'],
    [0, 502, 'upstream_error'],
  ];
  for (const [native, status, code] of cases)
    t.throws(
      () => vendorjUpstreamFormat.readCreated(answer({ code: native, message: 'Their words', data: null })),
      { name: 'GatewayError', status, code, message: native === 50401 ? /account/ : /^Their words$/ },
      String(native),
    );
});

test('a polled task has its state, its progress and its result', async (t) => {
  const read = (data: unknown) =>
    vendorjUpstreamFormat.readPolled(answer({ code: 10000, message: 'Success', data }));
  t.same(read({ status: 'in_queue' }), update('queued'));
  t.same(read({ status: 'generating', video_url: '' }), update('in_progress'));
  t.same(
    read({ status: 'done', video_url: 'https://h/v.mp4', binary_data_base64: null, resp_data: '' }),
    update('completed', { result: { ...noResult, url: 'https://h/v.mp4' } }),
  );
  for (const status of ['not_found', 'expired'])
    t.throws(() => read({ status }), { name: 'GatewayError', kind: 'not_found' }, status);
  for (const data of [null, {}, { status: 'odd' }, { status: 7 }])
    t.throws(() => read(data), { name: 'GatewayError', kind: 'upstream_error' }, JSON.stringify(data));
});

test('a number other than 10000 in the answer about a task', async (t) => {
  const read = (code: number, data: unknown = null) =>
    vendorjUpstreamFormat.readPolled(answer({ code, message: 'Their words', data }));
  for (const code of [50411, 50412, 50500, 50511, 50513])
    t.same(
      read(code),
      update('failed', { error: { code: String(code), message: 'Their words' } }),
      String(code),
    );
  t.match(read(50999, { status: 'done' }), { state: 'failed', error: { code: '50999' } });
  const thrown: [number, string][] = [
    [50400, 'upstream_error'],
    [50429, 'rate_limit_exceeded'],
    [50430, 'rate_limit_exceeded'],
    [50999, 'upstream_error'],
  ];
  for (const [code, kind] of thrown) t.throws(() => read(code), { name: 'GatewayError', kind }, String(code));
});
