import { test } from 'tap';
import { advance, failedTask } from '../../src/video/advance.js';
import { readTask, writeTask } from '../../src/video/book.js';
import { fc } from '../support/seed.js';
import { result, sampleTask, start, taskAt, update } from './samples.js';

const tasks = [
  sampleTask(),
  taskAt('vendork', { externalId: 'mine', operation: 'image', size: null }),
  advance(taskAt('generic'), update('completed', { result }), start),
  failedTask(taskAt('vendorj'), { code: '50412', message: 'No.' }, start),
];

test('a task is read as it was written', async (t) => {
  for (const task of tasks) t.same(readTask(writeTask(task)), task);
});

test('a record of another version is none', async (t) => {
  const record = JSON.parse(writeTask(sampleTask())) as Record<string, unknown>;
  t.not(readTask(JSON.stringify(record)), null);
  for (const version of [0, 2, '1', null, undefined])
    t.equal(readTask(JSON.stringify({ ...record, version })), null, String(version));
});

test('a record that lacks a member, or has one of another type, is none', async (t) => {
  for (const task of tasks) {
    for (const name of Object.keys(task)) {
      const record = { ...task, [name]: undefined };
      t.equal(readTask(JSON.stringify(record)), null, name);
      t.equal(readTask(JSON.stringify({ ...task, [name]: [[]] })), null, name);
    }
  }
  t.equal(readTask(writeTask({ ...sampleTask(), progress: 101 })), null);
});

test('no text breaks the reader', async (t) => {
  for (const text of ['', 'null', '[]', '{}', '{"version":1}', '"x"', '{'.repeat(100)])
    t.equal(readTask(text), null, text);
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => readTask(text) === null));
  const whole = writeTask(tasks[2] as (typeof tasks)[number]);
  fc.assert(
    fc.property(fc.nat({ max: whole.length - 1 }), (length) => readTask(whole.slice(0, length)) === null),
  );
});
