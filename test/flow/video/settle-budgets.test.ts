import { test } from 'tap';
import type { Services } from '../../../src/flow/services.js';
import { settleTask } from '../../../src/flow/video/settle.js';
import type { CallRecord } from '../../../src/metrics/call-record.js';
import type { BudgetAccounts } from '../../../src/store/accounts.js';
import { createStore } from '../../../src/store/create.js';
import { createRecordAccounts } from '../../../src/store/record-accounts.js';
import { failedTask } from '../../../src/video/advance.js';
import { TaskBook } from '../../../src/video/book.js';
import { eventually } from '../../support/eventually.js';
import { charged, endTask, pool, servicesOf, settlingWith } from '../../support/tasks/settling.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { sampleTask } from '../../video/samples.js';

test('a budget whose store does not answer is told again, and what counted already counts once', async (t) => {
  const store = createStore({ kind: 'embedded', path: temporaryFolder(t), taskDays: 1 });
  t.teardown(() => store.close());
  const accounts = createRecordAccounts(store);
  let asked = 0;
  const deaf: BudgetAccounts = {
    ...accounts,
    async reserve(account, reservation) {
      asked++;
      const granted = await accounts.reserve(account, reservation);
      if (asked < 3) throw new Error('the answer was lost');
      return granted;
    },
  };
  const day = 24 * 60 * 60 * 1000;
  await accounts.reserve('b', { limit: 1000, least: 0, want: 0, owed: 500, debt: null, ttlMs: day });
  const book = new TaskBook(store);
  const corrections: CallRecord[] = [];
  const services = {
    // Whoever settles it next comes when the time of the one before is over.
    book: Object.assign(book, { claim: async () => true }),
    budgets: deaf,
    correct: async (correction: CallRecord) => void corrections.push(correction),
    running: { snapshot: { usage: { ledger: true } } },
  };
  const charge = {
    nanoUsd: 200,
    paidNanoUsd: null,
    seconds: 4,
    videos: 1,
    budgets: [{ pool: 'b', limit: 1000 }],
  };
  const task = sampleTask({ state: 'queued', expiresAt: Date.now() + day, charge });
  await store.create('tasks', task.id, JSON.stringify(task), day);
  const booked = await book.find(task.id);
  if (booked === null) throw new Error('the task is gone');
  await book.update(booked, (known) => failedTask(known, { code: 'c', message: 'no' }, Date.now()));
  const settle = () => settleTask(services as unknown as Services, task.id);
  await t.rejects(settle());
  await t.rejects(settle());
  await settle();
  t.equal(await accounts.reservedOf('b'), 300);
  t.strictSame((await book.owed(10, null)).ids, []);
  await settle();
  t.equal(asked, 3, 'what was answered is told no more');
  t.match(corrections, [{ costNanoUsd: -200 }]);
  t.equal(corrections.length, 1, 'the line follows the budgets');
});

test('a task whose process is killed over its budget is settled once, though many others are before it is told anew', async (t) => {
  const store = createStore({ kind: 'embedded', path: temporaryFolder(t), taskDays: 1 });
  t.teardown(() => store.close());
  const settling = settlingWith(store);
  const others = 100;
  const day = 24 * 60 * 60 * 1000;
  const spent = { limit: 1e6, least: 0, want: 0, owed: 1e5, debt: null, ttlMs: day };
  await store.accounts.reserve(pool, spent);
  let isTold = false;
  const killed = {
    ...settling,
    budgets: {
      ...settling.budgets,
      reserve: async (...asked: Parameters<BudgetAccounts['reserve']>) => {
        await settling.budgets.reserve(...asked);
        isTold = true;
        return new Promise<never>(() => {});
      },
    },
  };
  const idOf = (number: number): string => `video_${number.toString(16).padStart(32, '0')}`;
  await endTask(store, killed, idOf(0));
  await eventually(() => isTold);
  for (let number = 1; number <= others; number++) await endTask(store, settling, idOf(number));
  await eventually(async () => (await settling.book.owed(1000, null)).ids.length === 1);
  t.equal(await store.accounts.reservedOf(pool), spent.owed);
  // Whoever settles it next comes when the time of the one before is over.
  const next = { ...settling, book: Object.assign(new TaskBook(store), { claim: async () => true }) };
  await settleTask(servicesOf(next), idOf(0));
  t.equal(await store.accounts.reservedOf(pool), spent.owed, `not ${charged} less`);
  t.strictSame((await settling.book.owed(10, null)).ids, []);
});
