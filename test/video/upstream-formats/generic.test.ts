import { test } from 'tap';
import { genericUpstreamFormat } from '../../../src/video/upstream-formats/generic.js';
import { answer, noResult, taskAt, update } from '../samples.js';

test('a task is polled under its id, and its content is where its answer says', async (t) => {
  const task = taskAt('generic');
  t.same(genericUpstreamFormat.poll(task), {
    method: 'GET',
    path: '/video/generations/up-1',
    contentType: null,
    body: [],
  });
  t.equal(genericUpstreamFormat.content(task, 'video'), null);
});

test('the answer to a creation has the id of the task, and its state if it says one', async (t) => {
  const read = (value: unknown) => genericUpstreamFormat.readCreated(answer(value));
  t.same(read({ task_id: 'up-1', status: 'queued' }), { id: 'up-1', update: update('queued') });
  t.same(read({ id: 'up-1' }), { id: 'up-1', update: null });
  t.throws(() => read({ status: 'queued' }), { name: 'GatewayError', kind: 'upstream_error' });
  t.throws(() => read({ error: { message: 'Sorry' } }), { name: 'GatewayError', message: 'Sorry' });
});

test('a polled task has its state, its progress and its result', async (t) => {
  const read = (value: unknown) => genericUpstreamFormat.readPolled(answer(value));
  t.same(read({ task_id: 'up-1', status: 'queued' }), update('queued'));
  t.same(read({ status: 'in_progress', progress: '50%' }), update('in_progress', { progress: 50 }));
  t.same(
    read({
      status: 'completed',
      url: 'https://h/v.mp4',
      format: 'mp4',
      metadata: { duration: 5.1, fps: 24, width: 1280, height: 720, seed: 0 },
    }),
    update('completed', {
      result: { url: 'https://h/v.mp4', duration: 5.1, fps: 24, width: 1280, height: 720, seed: 0 },
    }),
  );
  t.match(read({ status: 'completed', format: 'webm' }), { result: { format: 'webm' } });
  t.notOk('format' in (read({ status: 'completed', format: 'a b' }).result ?? {}));
  t.same(
    read({ status: 'failed', error: { code: 500, message: 'No.' } }),
    update('failed', { error: { code: '500', message: 'No.' } }),
  );
  t.throws(() => read({ status: 'not_found' }), { name: 'GatewayError', kind: 'not_found' });
  t.throws(() => read({}), { name: 'GatewayError', kind: 'upstream_error' });
});

test('only an http(s) URL of a bearable length is the address of a video', async (t) => {
  for (const url of ['file:///etc/passwd', 'x', '', 'https://', `https://h/${'x'.repeat(9000)}`, 7, null])
    t.same(
      genericUpstreamFormat.readPolled(answer({ status: 'completed', url })),
      update('completed', { result: noResult }),
      String(url).slice(0, 20),
    );
});

test('what is kept of a failure is bounded', async (t) => {
  const error = { code: 'c'.repeat(1e5), message: 'm'.repeat(1e5) };
  const read = genericUpstreamFormat.readPolled(answer({ status: 'failed', error }));
  t.equal(read.error?.code.length, 100);
  t.equal(read.error?.message.length, 2000);
});
