import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { createEmbeddedStore } from '../../../src/store/embedded.js';
import { createPostgresStore } from '../../../src/store/postgres.js';
import type { Store } from '../../../src/store/store.js';
import { postgresSettings } from '../../suites/store.js';
import { startPostgres } from '../postgres.js';

/** Creates a store for a test, which ends with it; null if its server is missing. */
type OpenStore = (t: Test) => Promise<Store | null>;

/** Every kind of store. */
export const openStores: Readonly<Record<Store['kind'], OpenStore>> = {
  async embedded(t) {
    const path = mkdtempSync(join(tmpdir(), 'tasks-'));
    const store = createEmbeddedStore({ path });
    t.teardown(async () => {
      await store.close();
      rmSync(path, { recursive: true, force: true });
    });
    return store;
  },
  async postgres(t) {
    const server = await startPostgres();
    if (server === null) return null;
    const store = createPostgresStore(postgresSettings(server.port));
    t.teardown(async () => {
      await store.close();
      await server.stop();
    });
    return store;
  },
};

/** A store whose calls fail by their number. */
interface FailingStore {
  readonly store: Store;
  /** Number of calls so far. */
  calls(): number;
  /** Makes calls fail from this number (from 0) until there are `end`, whatever they are. */
  fail(from: number, end: number, done: boolean): void;
}

/** A store that fails on demand: before it does what was requested, or after. */
export function failingStore(inner: Store, error: () => Error): FailingStore {
  let count = 0;
  let failing = { from: 0, end: 0, done: false };
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    const number = count;
    count += 1;
    if (number < failing.from || number >= failing.end) return work();
    if (failing.done) await work();
    throw error();
  };
  return {
    calls: () => count,
    fail(from, end, done) {
      failing = { from, end, done };
    },
    store: {
      kind: inner.kind,
      get: (...asked) => call(() => inner.get(...asked)),
      create: (...asked) => call(() => inner.create(...asked)),
      replace: (...asked) => call(() => inner.replace(...asked)),
      remove: (...asked) => call(() => inner.remove(...asked)),
      list: (...asked) => call(() => inner.list(...asked)),
      claim: (...asked) => call(() => inner.claim(...asked)),
      sweep: () => call(() => inner.sweep()),
      close: () => inner.close(),
    },
  };
}
