import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import t, { type Test, test } from 'tap';
import type { StoreSettings } from '../../src/config/types.js';
import { settleTask } from '../../src/flow/video/settle.js';
import { createStore } from '../../src/store/create.js';
import { storeUnavailable, type WholeStore } from '../../src/store/store.js';
import { readRow } from '../../src/usage/call-rows.js';
import { TaskBook } from '../../src/video/book.js';
import { postgresSettings, unavailable } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { sharedSecret } from '../support/gateway-config.js';
import { readLedger } from '../support/ledger.js';
import { mediaConfig } from '../support/media/gateway.js';
import { noPostgres, startPostgres } from '../support/postgres.js';
import { charged, endTask, pool, servicesOf, settlingWith } from '../support/tasks/settling.js';
import { steps } from '../support/tasks/settling-process.js';
import { failingStore } from '../support/tasks/store.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const script = fileURLToPath(new URL('../support/tasks/settling-process.js', import.meta.url));

/** A store as code opens it and as a config names it. */
interface Place {
  readonly settings: StoreSettings;
  readonly config: Readonly<Record<string, unknown>>;
}

const places: Readonly<Record<StoreSettings['kind'], (t: Test) => Promise<Place | null>>> = {
  async embedded(t) {
    const settings = { kind: 'embedded', path: temporaryFolder(t), taskDays: 7 } as const;
    return { settings, config: { kind: 'embedded', path: settings.path } };
  },
  async postgres(t) {
    const server = await startPostgres();
    if (server === null) return null;
    t.teardown(() => server.stop());
    return {
      settings: postgresSettings(server.port),
      config: { kind: 'postgres', url: server.url, schema: 'gateway' },
    };
  },
};

/** What the ledger has put right, by the ids of tasks. */
async function corrections(store: WholeStore, ids: readonly string[]): Promise<readonly string[]> {
  const rows = (await store.calls?.find(ids)) ?? [];
  const records = [...(await readLedger(store)), ...rows.map(readRow)];
  return records
    .flatMap((record) =>
      record?.outcome === 'correction' ? `${record.requestId} ${record.costNanoUsd}` : [],
    )
    .sort();
}

async function owedIds(store: WholeStore): Promise<readonly string[]> {
  return (await new TaskBook(store).owed(100, null)).ids;
}

for (const [kind, open] of Object.entries(places)) {
  const placeTest = (name: string, body: (t: Test, place: Place, store: WholeStore) => Promise<void>): void =>
    void test(`${kind}: ${name}`, { timeout: 120_000 }, async (t) => {
      const place = await open(t);
      if (place === null) {
        t.pass(`skipped: ${noPostgres}`);
        return;
      }
      const store = createStore(place.settings);
      t.teardown(() => store.close());
      await body(t, place, store);
    });

  placeTest(
    'a task whose process is killed at any step of its settlement is settled once by others',
    async (t, { settings, config }, store) => {
      const dying = fork(script, [JSON.stringify(settings)]);
      const told: unknown[] = [];
      dying.on('message', (step) => told.push(step));
      await eventually(() => told.length === steps.length || dying.exitCode !== null);
      dying.kill('SIGKILL');
      await once(dying, 'exit');
      t.strictSame(told, steps);
      const ids = steps.map((step) => `video_${step}`);
      t.strictSame((await owedIds(store)).toSorted(), ids.toSorted(), 'all are to be settled');
      const gateways = [1, 2].map(() =>
        startGateway(t, {
          config: mediaConfig(t, {
            upstreams: {},
            models: {},
            config: { store: config, secret: sharedSecret, usage: { ledger: true } },
          }),
        }),
      );
      await Promise.all(gateways);
      await eventually(async () => (await owedIds(store)).length === 0, { everyMs: 100 });
      t.equal(await store.accounts.reservedOf(pool), 0);
      t.strictSame(await corrections(store, ids), ids.map((id) => `${id} -${charged}`).sort());
      for (const id of ids) t.equal((await new TaskBook(store).find(id))?.task.isOwed, undefined);
    },
  );

  placeTest('an end of which the store told nothing is settled as another', async (t, _place, store) => {
    const settling = settlingWith(store);
    const failing = failingStore(store, () => storeUnavailable('as ordered'));
    // Found, noted to be owed, and the end is written: of that the answer is lost.
    failing.fail(2, 3, true);
    const deaf = { ...settling, book: new TaskBook(failing.store) };
    await unavailable(t, endTask(store, deaf, 'video_a'));
    t.match(await settling.book.find('video_a'), { task: { state: 'failed', isOwed: true } });
    await Promise.all([1, 2, 3].map(() => settleTask(servicesOf(settling), 'video_a')));
    t.equal(await store.accounts.reservedOf(pool), 0);
    t.strictSame(await corrections(store, ['video_a']), [`video_a -${charged}`]);
    t.strictSame(await owedIds(store), []);
  });
}

t.end();
