import { test } from 'tap';
import { changeByPoll, type PollAnswer } from '../../src/video/advance.js';
import { type VideoFormat, videoFormats } from '../../src/video/task.js';
import { answer, start, taskAt } from './samples.js';

const later = start + 60_001;
const polled = (status: number, body: unknown, more: Partial<PollAnswer> = {}): PollAnswer => ({
  status,
  body: answer(body),
  isMaker: true,
  ...more,
});
const gone = { error: { message: 'no such video' } };

/** How each format says that it does not know a task, apart from the status 404. */
const words: Partial<Record<VideoFormat, unknown>> = {
  compat: { id: 'up-1', status: 'expired' },
  generic: { task_id: 'up-1', status: 'not_found' },
  vendork: { code: 1203, message: 'task not found' },
  vendorj: { code: 10_000, data: { status: 'not_found' } },
};

test('an old task that its upstream does not know any more has failed', async (t) => {
  for (const format of videoFormats) {
    const task = taskAt(format, { progress: 40, state: 'in_progress' });
    for (const heard of [polled(404, gone), polled(200, words[format])]) {
      t.match(
        changeByPoll(task, heard, later)?.(task),
        { state: 'failed', progress: 40, error: { code: 'task_lost' }, updatedAt: later },
        format,
      );
    }
  }
});

test('a task of the last minute is not lost', async (t) => {
  for (const format of videoFormats) {
    const task = taskAt(format);
    t.equal(changeByPoll(task, polled(404, gone), start + 60_000), null);
    t.throws(() => changeByPoll(task, polled(200, words[format]), start + 60_000), {
      name: 'GatewayError',
      kind: 'not_found',
    });
  }
});

test('a task is not lost because another key does not see it', async (t) => {
  for (const format of videoFormats) {
    const task = taskAt(format);
    t.equal(changeByPoll(task, polled(404, gone, { isMaker: false }), later), null);
    t.throws(() => changeByPoll(task, polled(200, words[format], { isMaker: false }), later), {
      name: 'GatewayError',
      kind: 'not_found',
    });
  }
});

test('a 404 that is no JSON object is of something before the upstream', async (t) => {
  const task = taskAt('compat');
  for (const body of ['', '<html>404 Not Found</html>', '[]', '"gone"', 'null'])
    t.equal(changeByPoll(task, polled(404, null, { body: Buffer.from(body) }), later), null, body);
});

test('an error status says nothing of a task, unless its body says that the task failed', async (t) => {
  const task = taskAt('vendorj');
  t.equal(changeByPoll(task, polled(500, { error: {} }), later), null);
  t.equal(changeByPoll(task, polled(429, { code: 50_429, message: 'slow down' }), later), null);
  const failed = changeByPoll(task, polled(400, { code: 50_511, message: 'risk' }), later);
  t.match(failed?.(task), { state: 'failed', error: { message: 'risk' } });
});

test('an answer that cannot be understood is none', async (t) => {
  const task = taskAt('compat');
  for (const body of [[], {}, { status: 7 }, { status: 'new word' }])
    t.throws(() => changeByPoll(task, polled(200, body), later), {
      name: 'GatewayError',
      kind: 'upstream_error',
    });
});

test('a state is taken at any age', async (t) => {
  const task = taskAt('compat');
  const running = changeByPoll(task, polled(200, { status: 'in_progress', progress: 7 }), start + 1);
  t.match(running?.(task), { state: 'in_progress', progress: 7 });
});
