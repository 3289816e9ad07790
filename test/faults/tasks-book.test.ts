import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import t, { type Test, test } from 'tap';
import { type Store, storeUnavailable } from '../../src/store/store.js';
import { failedTask, submitted } from '../../src/video/advance.js';
import {
  type BookedTask,
  endInterrupted,
  type Submission,
  submissionHere,
  TaskBook,
} from '../../src/video/book.js';
import type { VideoTask } from '../../src/video/task.js';
import { unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { noPostgres } from '../support/postgres.js';
import { failingStore, openStores } from '../support/tasks/store.js';
import { sampleTask } from '../video/samples.js';

const minuteMs = 60_000;
const request = { mark: 'a request', fingerprint: 'this-one' };
const collections = ['tasks', 'submissions', 'task-requests'];
/** Longer than any submission lasts. */
const longMs = 3_600_000;

function task(id: string) {
  const now = Date.now();
  return sampleTask({ id, createdAt: now, updatedAt: now, expiresAt: now + minuteMs });
}

/** Has the time of a task be over as soon as this is noted. @returns the task as it stood there last */
async function expire(book: TaskBook, id: string): Promise<BookedTask> {
  const booked = await book.find(id);
  if (booked === null) throw new Error('there is no such task');
  const change = (current: VideoTask): VideoTask => ({ ...current, expiresAt: Date.now() });
  const last = await book.update(booked, change);
  if (last === null) throw new Error('the task is gone too early');
  return { task: last, revision: booked.revision + 1 };
}

async function idsIn(store: Store): Promise<Record<string, string[]>> {
  const lists = collections.map(async (collection): Promise<[string, string[]]> => {
    const { records } = await store.list(collection, 100, null);
    return [collection, records.map(({ id }) => id)];
  });
  return Object.fromEntries(await Promise.all(lists));
}

const empty = { tasks: [], submissions: [], 'task-requests': [] };

/** A process that has ended. */
const dead = (taskId: string): Submission => ({ ...submissionHere(taskId, longMs), process: 2 ** 22 + 1 });

for (const [kind, open] of Object.entries(openStores)) {
  const storeTest = (name: string, body: (t: Test, store: Store) => Promise<void>): void =>
    void test(`${kind}: ${name}`, async (t) => {
      const store = await open(t);
      if (store === null) t.pass(`skipped: ${noPostgres}`);
      else await body(t, store);
    });

  storeTest('a task is gone when its time is over, and swept', async (t, store) => {
    const book = new TaskBook(store);
    await book.open(task('short'), submissionHere('short', longMs), null);
    await book.recordSubmission(submitted(task('short'), { id: 'up', update: null }, Date.now()));
    await book.open(task('long'), submissionHere('long', longMs), null);
    t.equal((await book.find('short'))?.task.upstream.id, 'up');
    await expire(book, 'short');
    await eventually(async () => (await book.find('short')) === null);
    t.equal((await book.find('long'))?.task.id, 'long');
    await store.sweep();
    t.strictSame((await idsIn(store)).tasks, ['long']);
  });

  storeTest('a change never brings a task back that has expired', async (t, store) => {
    const book = new TaskBook(store);
    await book.open(task('short'), submissionHere('short', longMs), null);
    const booked = await expire(book, 'short');
    await eventually(async () => (await book.find('short')) === null);
    t.equal(await book.update(booked, (current) => ({ ...current, progress: 50 })), null);
    t.equal(await book.find('short'), null);
  });

  storeTest(
    'a failure at any step of noting a task leaves nothing, and the request is free',
    async (t, store) => {
      for (const done of [false, true]) {
        // The submission, the task, the request.
        for (const step of [0, 1, 2]) {
          const failing = failingStore(store, () => storeUnavailable('as ordered'));
          const book = new TaskBook(failing.store);
          failing.fail(step, step + 1, done);
          const name = `call ${step} fails${done ? ' after it was done' : ''}`;
          await unavailable(t, book.open(task('a'), submissionHere('a', longMs), request));
          failing.fail(0, 0, done);
          await eventually(async () => JSON.stringify(await idsIn(store)) === JSON.stringify(empty), {
            everyMs: 5,
          });
          t.pass(name);
          t.equal(await book.open(task('b'), submissionHere('b', longMs), request), null, name);
          await book.discard('b', request);
          t.strictSame(await idsIn(store), empty, name);
        }
      }
    },
  );

  storeTest('what cannot be forgotten is forgotten later', async (t, store) => {
    const failing = failingStore(store, () => storeUnavailable('as ordered'));
    const book = new TaskBook(failing.store);
    await book.open(task('a'), submissionHere('a', longMs), request);
    failing.fail(0, Number.POSITIVE_INFINITY, false);
    await book.discard('a', request);
    await book.catchUp();
    t.strictSame((await idsIn(store)).tasks, ['a']);
    failing.fail(0, 0, false);
    await book.catchUp();
    t.strictSame(await idsIn(store), empty);
    const before = failing.calls();
    await book.catchUp();
    t.equal(failing.calls(), before, 'once');
  });

  storeTest('to forget a task leaves the request to the one that it made before', async (t, store) => {
    const book = new TaskBook(store);
    await book.open(task('first'), submissionHere('first', longMs), request);
    t.equal(await book.open(task('second'), submissionHere('second', longMs), request), 'first');
    t.equal(await book.find('second'), null);
    await book.discard('second', request);
    t.equal(await book.open(task('third'), submissionHere('third', longMs), request), 'first');
    t.strictSame(await idsIn(store), {
      tasks: ['first'],
      submissions: ['first'],
      'task-requests': [request.mark],
    });
  });

  storeTest('another request under the same name is a conflict, and leaves nothing', async (t, store) => {
    const book = new TaskBook(store);
    await book.open(task('first'), submissionHere('first', longMs), request);
    const other = { ...request, fingerprint: 'another' };
    const refusal = await book
      .open(task('second'), submissionHere('second', longMs), other)
      .catch((fault) => fault);
    t.match(refusal, { kind: 'conflict', unrepeatable: true });
    await eventually(async () => (await book.find('second')) === null, { everyMs: 5 });
    t.pass('the second is forgotten');
    t.equal(await book.open(task('third'), submissionHere('third', longMs), request), 'first');
  });

  storeTest('what cannot be noted of a task that was made is noted later', async (t, store) => {
    const failing = failingStore(store, () => storeUnavailable('as ordered'));
    const book = new TaskBook(failing.store);
    await book.open(task('a'), submissionHere('a', longMs), request);
    const made = submitted(task('a'), { id: 'up', update: null }, Date.now());
    failing.fail(0, Number.POSITIVE_INFINITY, false);
    await unavailable(t, book.recordSubmission(made));
    book.recordSubmissionLater(made);
    await book.catchUp();
    failing.fail(0, 0, false);
    t.equal((await book.find('a'))?.task.state, 'submitting');
    await book.catchUp();
    t.match(await book.find('a'), { task: { state: 'queued', upstream: { id: 'up' } } });
    t.strictSame((await idsIn(store)).submissions, []);
  });

  storeTest('a process that has ended and that nobody has asked for is none', async (t, store) => {
    // What the shell becomes never asks for the child that the shell had, and the shell may.
    const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.teardown(() => parent.kill('SIGKILL'));
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const zombie = Number(line.toString());
    const statOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, 'latin1');
    await eventually(() => statOf(parent.pid ?? 0).includes('(sleep)'));
    process.kill(zombie, 'SIGKILL');
    await eventually(() => /\) Z /.test(statOf(zombie)));
    const book = new TaskBook(store);
    await book.open(task('a'), { ...submissionHere('a', longMs), started: '', process: zombie }, null);
    await book.open(
      task('b'),
      { ...submissionHere('b', longMs), started: '', process: parent.pid ?? 0 },
      null,
    );
    const found = await endInterrupted(book);
    t.strictSame(
      found.map(({ submission }) => submission.taskId),
      ['a'],
    );
  });

  storeTest('of submissions those are ended whose process is gone, each by one process', async (t, store) => {
    const book = new TaskBook(store);
    const submissions: Record<string, Submission> = {
      dead: dead('dead'),
      'this one': submissionHere('this one', longMs),
      // Of a process that had this one's number before.
      before: { ...submissionHere('before', longMs), started: 'before' },
      elsewhere: { ...dead('elsewhere'), host: `not ${hostname()}` },
      'of the same name': { ...dead('of the same name'), boot: 'of another machine' },
      'long ago': { ...dead('long ago'), host: `not ${hostname()}`, until: Date.now() - 1 },
      'no task': dead('no task'),
      settled: dead('settled'),
    };
    for (const [id, submission] of Object.entries(submissions)) {
      if (id === 'no task') await store.create('submissions', id, JSON.stringify(submission), minuteMs);
      else await book.open(task(id), submission, null);
    }
    const made = submitted(task('settled'), { id: 'up', update: null }, Date.now());
    await store.replace(
      'tasks',
      'settled',
      JSON.stringify(made),
      (await book.find('settled'))?.revision ?? 0,
      minuteMs,
    );

    const found = await Promise.all([1, 2, 3].map(() => endInterrupted(new TaskBook(store))));
    t.strictSame(
      found
        .flat()
        .map(({ task: { id, state, error } }) => `${id} ${state} ${error?.code}`)
        .sort(),
      ['before', 'dead', 'long ago'].map((id) => `${id} failed submission_interrupted`),
    );
    t.strictSame((await idsIn(store)).submissions?.sort(), ['elsewhere', 'of the same name', 'this one']);
    t.equal((await book.find('settled'))?.task.state, 'queued');
  });

  storeTest("a submission's age is told by the store's clock, not by its host's", async (t, store) => {
    const book = new TaskBook(store);
    const elsewhere = (id: string, hoursOff: number, lastsMs: number): Submission => {
      const at = Date.now() + hoursOff * longMs;
      return { ...dead(id), host: `not ${hostname()}`, at, until: at + lastsMs };
    };
    await book.open(task('late clock'), elsewhere('late clock', -2, longMs), null);
    await book.open(task('early clock'), elsewhere('early clock', 2, 1), null);
    const found: string[] = [];
    await eventually(async () => {
      found.push(...(await endInterrupted(book)).map(({ submission }) => submission.taskId));
      return found.length > 0;
    });
    t.strictSame(found, ['early clock']);
    t.strictSame((await idsIn(store)).submissions, ['late clock']);
  });

  storeTest(
    'a task whose process was killed before it was watched is watched all the same',
    async (t, store) => {
      const book = new TaskBook(store);
      await book.open(task('a'), dead('a'), null);
      const made = submitted(task('a'), { id: 'up', update: null }, Date.now());
      const { revision = 0 } = (await book.find('a')) ?? {};
      await store.replace('tasks', 'a', JSON.stringify(made), revision, minuteMs);
      t.strictSame((await book.underWay(10, null)).ids, []);
      t.strictSame(await endInterrupted(book), []);
      t.strictSame((await book.underWay(10, null)).ids, ['a']);
      t.strictSame((await idsIn(store)).submissions, []);
    },
  );

  storeTest('a settlement that is tried again takes nothing back of what followed', async (t, store) => {
    const failing = failingStore(store, () => storeUnavailable('as ordered'));
    const book = new TaskBook(failing.store);
    await book.open(task('a'), submissionHere('a', longMs), null);
    const made = submitted(task('a'), { id: 'up', update: null }, Date.now());
    let hasFailed = false;
    for (let step = 0, isSettled = false; !isSettled; step++) {
      failing.fail(failing.calls() + step, failing.calls() + step + 1, true);
      isSettled = await book.recordSubmission(made).then(
        () => true,
        () => false,
      );
      const booked = await new TaskBook(store).find('a');
      if (hasFailed || booked === null || booked.task.state === 'submitting') continue;
      hasFailed = !isSettled;
      await new TaskBook(store).update(booked, (known) =>
        failedTask(known, { code: 'c', message: 'no' }, Date.now()),
      );
    }
    t.ok(hasFailed, 'the upstream has told of its end between two tries');
    t.equal((await new TaskBook(store).find('a'))?.task.state, 'failed');
  });
}

t.end();
