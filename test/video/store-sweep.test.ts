import pino from 'pino';
import { test } from 'tap';
import { createStore } from '../../src/store/create.js';
import { storeUnavailable } from '../../src/store/store.js';
import { TaskBook } from '../../src/video/book.js';
import { startStoreSweep } from '../../src/video/store-sweep.js';
import { eventually } from '../support/eventually.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('a task that cannot be settled holds up no other', async (t) => {
  const settings = { kind: 'embedded', path: temporaryFolder(t), taskDays: 1 } as const;
  const store = createStore(settings);
  t.teardown(() => store.close());
  for (const id of ['video_1', 'video_2', 'video_3']) await store.create('tasks-owed', id, '', 60_000);
  const faults: Readonly<Record<string, Error>> = {
    video_1: storeUnavailable('its account cannot be read'),
    video_2: new Error('unforeseen'),
  };
  const told: string[] = [];
  const lines: string[] = [];
  const sweep = startStoreSweep({
    settings,
    store,
    book: new TaskBook(store),
    log: pino({}, { write: (line: string) => void lines.push(line) }),
    async settle(id) {
      told.push(id);
      const fault = faults[id];
      if (fault !== undefined) throw fault;
    },
  });
  t.teardown(() => sweep.stop());
  await eventually(() => told.includes('video_3'));
  t.strictSame(told.slice(0, 3), ['video_1', 'video_2', 'video_3']);
  await eventually(() => lines.length > 0);
  t.match(
    lines,
    [/"unforeseen".*what tasks were charged could not be put right/s],
    'what nobody else tells is told',
  );
});

test('what fails once it was stopped is not told', async (t) => {
  const settings = { kind: 'embedded', path: temporaryFolder(t), taskDays: 1 } as const;
  const store = createStore(settings);
  t.teardown(() => store.close());
  const lines: string[] = [];
  const failures: ((reason: Error) => void)[] = [];
  const sweep = startStoreSweep({
    settings,
    store: {
      ...store,
      claim: () =>
        new Promise((_resolve, reject) => {
          failures.push(reject);
        }),
    },
    book: new TaskBook(store),
    log: pino({}, { write: (line: string) => void lines.push(line) }),
    settle: () => Promise.resolve(),
  });
  await eventually(() => failures.length > 0);
  sweep.stop();
  for (const fail of failures) fail(storeUnavailable('the store is closed'));
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(lines, []);
});
