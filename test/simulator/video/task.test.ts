import { test } from 'tap';
import { promptWishes } from '../../../src/simulator/faults/directives.js';
import {
  findTask,
  makeTask,
  newVideoBook,
  statusOf,
  type VideoTask,
} from '../../../src/simulator/video/task.js';

const pace = { queuedMs: 500, runningMs: 1500 };

function taskOf(prompt: string): VideoTask {
  const wish = {
    format: 'compat',
    operation: 'text',
    model: 'sim-video',
    wishes: promptWishes(prompt),
    width: 64,
    height: 48,
    seconds: 1,
    fps: 10,
    seed: null,
    images: [],
    externalId: null,
  } as const;
  return makeTask(wish, newVideoBook(pace));
}

test('the state follows from the clock', async (t) => {
  const task = taskOf('a fox');
  const at = (ms: number): unknown[] => {
    const { state, progress } = statusOf(task, task.createdAt + ms);
    return [state, progress];
  };
  t.strictSame(at(0), ['queued', 0]);
  t.strictSame(at(499), ['queued', 0]);
  t.strictSame(at(500), ['in_progress', 1]);
  t.strictSame(at(1250), ['in_progress', 50]);
  t.strictSame(at(1999), ['in_progress', 98]);
  t.strictSame(at(2000), ['completed', 100]);
  t.equal(statusOf(task, task.createdAt + 10_000).endedAt, task.createdAt + 2000);
  t.equal(statusOf(task, task.createdAt).endedAt, null);
});

test('the prompt sets the pace, the failure and the size', async (t) => {
  const task = taskOf('[[poll:status=500]] [[video:queued=10 running=20]] [[video:fail=gpu bytes=99]] a fox');
  t.match(task, { queuedMs: 10, runningMs: 20, failure: 'gpu', pollFaults: 'status=500', contentFaults: '' });
  t.equal(task.video.bytes, 99);
  t.strictSame(statusOf(task, task.createdAt + 30), {
    state: 'failed',
    progress: 99,
    endedAt: task.createdAt + 30,
  });
});

test('an id says all about its task, and no two are alike', async (t) => {
  const task = taskOf('[[video:fail=gpu]] a fox');
  t.strictSame(findTask(task.id, 'compat'), task);
  t.equal(findTask(task.id, 'generic'), null);
  t.equal(findTask(`${task.id}0`, 'compat'), null);
  t.equal(findTask('video_', 'compat'), null);
  const other = taskOf('[[video:fail=gpu]] a fox');
  t.not(other.id, task.id);
  t.strictSame(other.video, task.video, 'the same prompt has the same video');
  t.not(taskOf('a bear').video.seed, task.video.seed);
});
