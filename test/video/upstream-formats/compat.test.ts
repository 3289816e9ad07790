import { test } from 'tap';
import { readCompatBody, readCompatForm } from '../../../src/video/client-formats/compat.js';
import { readGenericBody } from '../../../src/video/client-formats/generic.js';
import { compatUpstreamFormat } from '../../../src/video/upstream-formats/compat.js';
import {
  answer,
  formBody,
  jpegText,
  jsonBody,
  noResult,
  part,
  png,
  sampleTask,
  taskAt,
  update,
} from '../samples.js';

test('a form goes on with all that is in it, and another model', async (t) => {
  const parts = [
    part('tag', 'a'),
    part('model', 'film'),
    part('prompt', 'Ünï'),
    part('tag', 'b'),
    part('mask', png, { filename: 'm.png', contentType: 'image/png' }),
    part('input_reference[image_url]', 'https://h/i'),
  ];
  const call = compatUpstreamFormat.create(readCompatForm(parts), 'film-1', 'video_1');
  t.strictSame(formBody(call), {
    tag: 'b',
    model: 'film-1',
    prompt: 'Ünï',
    mask: { filename: 'm.png', contentType: 'image/png', data: png.toString('base64') },
    'input_reference[image_url]': 'https://h/i',
  });
  t.equal(Buffer.concat(call.body).toString('latin1').split('name="tag"').length, 3, 'both of them');
});

test('JSON goes on as JSON', async (t) => {
  const body = { model: 'film', prompt: 'x', input_reference: { image_url: 'https://h/i' }, more: [1, null] };
  const call = compatUpstreamFormat.create(readCompatBody(body), 'film-1', 'video_1');
  t.match(call, { method: 'POST', path: '/videos', contentType: 'application/json' });
  t.strictSame(jsonBody(call), { ...body, model: 'film-1' });
});

test('an image of unknown name gets one by its type', async (t) => {
  const request = readGenericBody({ model: 'film', prompt: 'x', image: jpegText });
  t.match(formBody(compatUpstreamFormat.create(request, 'm', 'video_1')), {
    input_reference: { filename: 'image.jpg', contentType: 'image/jpeg', data: jpegText },
  });
});

test('a task is polled and its content fetched under its id', async (t) => {
  const task = taskAt('compat');
  t.same(compatUpstreamFormat.poll(task), {
    method: 'GET',
    path: '/videos/up-1',
    contentType: null,
    body: [],
  });
  t.equal(compatUpstreamFormat.content(task, 'video'), '/videos/up-1/content');
  t.equal(compatUpstreamFormat.content(task, 'thumbnail'), '/videos/up-1/content?variant=thumbnail');
  const strange = taskAt('compat', { upstream: { ...task.upstream, id: 'a/b?c' } });
  t.equal(compatUpstreamFormat.poll(strange).path, '/videos/a%2Fb%3Fc');
  t.throws(() => compatUpstreamFormat.poll(sampleTask()), { name: 'GatewayError', kind: 'internal_error' });
});

test('the answer to a creation has the id of the task, and its state if it says one', async (t) => {
  const read = (value: unknown) => compatUpstreamFormat.readCreated(answer(value));
  t.same(read({ id: 'up-1', object: 'video', status: 'queued', progress: 0 }), {
    id: 'up-1',
    update: update('queued', { progress: 0 }),
  });
  t.same(read({ id: 7 }), { id: '7', update: null });
  t.same(read({ id: 'up-1', status: 'strange' }), { id: 'up-1', update: null });
  t.match(read({ id: 'up-1', status: 'failed', error: { code: 'moderation_blocked', message: 'No.' } }), {
    update: { state: 'failed', error: { code: 'moderation_blocked', message: 'No.' } },
  });
  t.throws(() => read({ error: { message: 'Slow down', code: 'rate_limit_exceeded' } }), {
    name: 'GatewayError',
    kind: 'rate_limit_exceeded',
    message: 'Slow down',
  });
  for (const id of [undefined, null, '', '..', 'a b', 'ü', 1.5, 'x'.repeat(513)])
    t.throws(() => read({ id }), { name: 'GatewayError', kind: 'upstream_error' }, String(id).slice(0, 9));
});

test('a polled task has its state, its progress and its result', async (t) => {
  const read = (value: unknown) => compatUpstreamFormat.readPolled(answer(value));
  t.same(read({ status: 'queued' }), update('queued'));
  t.same(read({ status: 'in_progress', progress: 33 }), update('in_progress', { progress: 33 }));
  t.same(
    read({ status: 'completed', progress: 100, completed_at: 1_700_000_009, seconds: '8', size: '1280x720' }),
    update('completed', {
      progress: 100,
      completedAt: 1_700_000_009_000,
      result: { ...noResult, duration: 8, width: 1280, height: 720 },
    }),
  );
  t.same(
    read({ status: 'failed', progress: 12, error: { code: 'x', message: 'No.' } }),
    update('failed', { progress: 12, error: { code: 'x', message: 'No.' } }),
  );
  t.same(read({ status: 'failed' }), update('failed'));
  t.throws(() => read({ status: 'expired' }), { name: 'GatewayError', kind: 'not_found' });
  t.throws(() => read({ status: 'strange' }), { name: 'GatewayError', kind: 'upstream_error' });
  t.throws(() => read({ error: { message: 'Sorry' } }), { name: 'GatewayError', message: 'Sorry' });
});
