import { test } from 'tap';
import { advance, failedTask, hasEnded, newTask, submitted } from '../../src/video/advance.js';
import { readCompatBody } from '../../src/video/client-formats/compat.js';
import { upstreamFormats } from '../../src/video/formats.js';
import { type TaskState, type TaskUpdate, type VideoFormat, videoFormats } from '../../src/video/task.js';
import { fc } from '../support/seed.js';
import { answer, noResult, result, sampleTask, start, update } from './samples.js';

const failure = { code: 'boom', message: 'It broke.' };

test('a new task is being submitted', async (t) => {
  t.same(sampleTask(), {
    version: 1,
    id: 'video_1',
    keyId: 'key-1',
    groups: ['default'],
    format: 'compat',
    model: 'film',
    upstream: { name: 'studio', format: 'compat', model: 'film-1', id: null, credential: null },
    operation: 'text',
    state: 'submitting',
    progress: 0,
    createdAt: start,
    updatedAt: start,
    completedAt: null,
    expiresAt: start + 3_600_000,
    seconds: '8',
    size: '1280x720',
    externalId: null,
    result: null,
    error: null,
  });
});

test('a request without a length gets what its upstream makes of that', async (t) => {
  const seconds: Record<VideoFormat, string> = { compat: '4', generic: '4', vendork: '5', vendorj: '5' };
  for (const format of videoFormats) {
    const task = newTask({
      id: 'video_1',
      keyId: 'k',
      groups: [],
      request: readCompatBody({ model: 'film', prompt: 'x' }),
      upstream: { name: 'u', format, model: 'm', credential: 'mark' },
      now: start,
      ttlMs: 1,
    });
    t.match(task, { seconds: seconds[format], size: null, upstream: { credential: 'mark' } }, format);
  }
});

test('an accepted task is queued, or where its upstream says it is', async (t) => {
  t.match(submitted(sampleTask(), { id: 'up-1', update: null }, start + 5), {
    state: 'queued',
    progress: 0,
    updatedAt: start + 5,
    upstream: { id: 'up-1', name: 'studio' },
  });
  t.match(submitted(sampleTask(), { id: 'up-1', update: update('in_progress', { progress: 3 }) }, start), {
    state: 'in_progress',
    progress: 3,
  });
  t.match(submitted(sampleTask(), { id: 'up-1', update: update('failed', { error: failure }) }, start), {
    state: 'failed',
    error: failure,
    upstream: { id: 'up-1' },
  });
  const ended = failedTask(sampleTask(), failure, start);
  t.equal(submitted(ended, { id: 'up-1', update: null }, start), ended);
});

test('length and size are those that the upstream says, from its first answer on', async (t) => {
  const { compat, generic } = upstreamFormats;
  const made = compat.readCreated(answer({ id: 'up-1', status: 'queued', seconds: '12', size: '720x1280' }));
  const queued = submitted(sampleTask({ seconds: '4', size: null }), made, start);
  t.match(queued, { state: 'queued', seconds: '12', size: '720x1280', result: null });
  t.match(advance(queued, compat.readPolled(answer({ status: 'failed', seconds: '8' })), start), {
    state: 'failed',
    seconds: '8',
    size: '720x1280',
  });
  const polled = generic.readPolled(
    answer({ status: 'in_progress', metadata: { duration: 7.5, width: 640, height: 360 } }),
  );
  t.match(advance(queued, polled, start), { seconds: '12', size: '640x360' });
  const same = update('queued', { result: { ...noResult, duration: 12 } });
  t.equal(advance(queued, same, start + 1), queued, 'the same object');
});

test('a failed task keeps the progress that its upstream says', async (t) => {
  const task = sampleTask({ progress: 5 });
  t.match(advance(task, update('failed', { progress: 10 }), start), { state: 'failed', progress: 10 });
  t.match(advance(task, update('failed', { progress: 100 }), start), { progress: 5 });
  t.match(advance(task, update('failed', { progress: 3 }), start), { progress: 5 });
});

test('a state never goes back and progress never falls', async (t) => {
  const running = advance(sampleTask(), update('in_progress', { progress: 40.9 }), start + 1);
  t.match(running, { state: 'in_progress', progress: 40 });
  t.equal(advance(running, update('queued', { progress: 10 }), start + 2), running, 'the same object');
  t.equal(advance(running, update('in_progress'), start + 2), running, 'no progress told');
  t.match(advance(running, update('in_progress', { progress: 250 }), start + 2), {
    progress: 99,
    updatedAt: start + 2,
  });
  t.match(advance(running, update('in_progress', { progress: Number.NaN }), start + 2), { progress: 40 });
});

test('a completed task has its result and 100 percent', async (t) => {
  const done = advance(
    sampleTask(),
    update('completed', { progress: 70, completedAt: start + 10, result }),
    start + 20,
  );
  t.match(done, { state: 'completed', progress: 100, completedAt: start + 10, result, error: null });
  t.equal(advance(done, update('failed', { error: failure }), start + 30), done);
  t.equal(failedTask(done, failure, start + 30), done);
  t.equal(advance(done, update('completed', { result: null }), start + 30), done);
});

test('the length of a finished video is the one it has, where that is whole', async (t) => {
  const secondsOf = (duration: number | null) =>
    advance(sampleTask(), update('completed', { result: { ...result, duration } }), start).seconds;
  t.equal(secondsOf(5), '5');
  for (const duration of [null, 5.04, 1e300]) t.equal(secondsOf(duration), '8');
  t.equal(advance(sampleTask(), update('completed'), start).seconds, '8');
});

test("the end of a task lies between its beginning and now, whatever the upstream's clock says", async (t) => {
  const at = (completedAt: number | null) =>
    advance(sampleTask(), update('completed', { completedAt }), start + 20).completedAt;
  t.equal(at(start - 123), start);
  t.equal(at(start + 999), start + 20);
  t.equal(at(null), start + 20);
});

test('a failed task has a reason', async (t) => {
  t.match(failedTask(sampleTask(), failure, start + 1), {
    state: 'failed',
    error: failure,
    progress: 0,
    completedAt: null,
    updatedAt: start + 1,
  });
  t.match(advance(sampleTask(), update('failed', { progress: 100 }), start), {
    progress: 0,
    error: { code: 'generation_failed', message: /does not say why/ },
  });
});

const ranks: Record<TaskState, number> = {
  submitting: 0,
  queued: 1,
  in_progress: 2,
  completed: 3,
  failed: 3,
};

const updates: fc.Arbitrary<TaskUpdate> = fc.record({
  state: fc.constantFrom('queued', 'in_progress', 'completed', 'failed'),
  progress: fc.option(fc.oneof(fc.integer({ min: -50, max: 150 }), fc.double())),
  completedAt: fc.option(fc.oneof(fc.integer({ min: start - 1000, max: start + 1000 }), fc.double())),
  result: fc.option(fc.constant(result)),
  error: fc.option(fc.constant(failure)),
});

test('any sequence of updates keeps what holds of tasks', async (t) => {
  const times = fc.integer({ min: start - 100, max: start + 10_000 });
  fc.assert(
    fc.property(fc.array(fc.tuple(updates, times), { maxLength: 20 }), fc.boolean(), (steps, isNew) => {
      let task = isNew ? sampleTask() : submitted(sampleTask(), { id: 'up-1', update: null }, start);
      for (const [step, now] of steps) {
        const next = advance(task, step, now);
        if (hasEnded(task) && next !== task) return false;
        if (ranks[next.state] < ranks[task.state] || next.progress < task.progress) return false;
        if (next.updatedAt < task.updatedAt) return false;
        if (!Number.isInteger(next.progress) || next.progress < 0) return false;
        if ((next.progress === 100) !== (next.state === 'completed')) return false;
        if ((next.error !== null) !== (next.state === 'failed')) return false;
        if ((next.completedAt !== null) !== (next.state === 'completed')) return false;
        if (next.completedAt !== null && !(next.completedAt >= next.createdAt)) return false;
        const isSame =
          JSON.stringify({ ...next, updatedAt: 0 }) === JSON.stringify({ ...task, updatedAt: 0 });
        if (isSame && next !== task) return false;
        task = next;
      }
      return true;
    }),
  );
  t.pass();
});
