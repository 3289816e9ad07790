import type { ChildProcess } from 'node:child_process';
import type { Logger } from 'pino';
import type { Changed, KeyDesk } from '../admin/keys.js';
import type { ResolvedConfig, ResolvedKey } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import { announcementCollection } from '../keys/key-announcements.js';
import { KeyBook } from '../keys/key-book.js';
import { KeyWatch } from '../keys/key-watch.js';
import { toWire } from '../keys/key-wire.js';
import type { KeyChange, ManagedKey } from '../keys/managed-key.js';
import type { Store, WholeStore } from '../store/store.js';
import { dayMs, hourMs } from '../usage/budget.js';
import { inSlices, nextSlice, type Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import { sendMessageFully } from './keep.js';
import type { WorkerOrder } from './messages.js';

/** Longest wait of a start for the keys of the store. After it, the gateway starts with the config's keys. */
const firstLookMs = 3000;
/** Longest wait until the primary itself has read a change that it has just made. */
const ownLookMs = 1000;
/** Longest wait for a worker. A stuck one must not delay the operator who revokes a key. */
const confirmMs = 1000;
/** Polling interval for keys if the store reports changes itself. */
const heardEveryMs = 500;
/** Time until a revocation that the store did not accept is retried. */
const againMs = 1000;

interface ManagedKeysOptions {
  readonly store: Store & Pick<WholeStore, 'changes'>;
  /** The config in force now. */
  config(): ResolvedConfig;
  /** Sends an order to every worker. */
  tellAll(order: WorkerOrder): void;
  /** See `WorkerPool.confirm`. */
  confirm(mostMs: number): Promise<readonly ChildProcess[]>;
  /** Called with each change before the workers receive it. */
  onChange(change: KeyChange): void;
  readonly log: Logger;
}

/**
 * The keys that operators make at run time. The primary follows those of the store, and the workers follow the primary.
 */
export interface ManagedKeys {
  readonly desk: KeyDesk;
  /** Number of known keys that are not revoked. */
  count(): number;
  /** Resolves once the keys of the store are known, or are not available for now. */
  looked(): Promise<void>;
  /**
   * Sends a worker all keys. When this resolves, all have been sent, with the changes made meanwhile. If the keys are
   * not known yet, sends nothing: the worker receives them later, with all others.
   */
  greet(child: ChildProcess): Promise<void>;
  stop(): void;
}

/**
 * Keeps the managed keys of the store in force on every worker, for changes made by this process or by another host.
 * Operators of this process get their answer only then.
 */
export function createManagedKeys(options: ManagedKeysOptions): ManagedKeys {
  const { log, config, store } = options;
  let isKnown = false;
  let isStopped = false;

  const configured = createLookup(config);
  const book = new KeyBook(store, {
    taken: async (id) => (await configured([id])).has(id),
    ownedMs: () => ownedMs(config()),
  });
  /** Repeats a revocation that the store has lost, because hosts that start later would not know of it. */
  const revokeAgain = (id: string): void => {
    book.revoke(id).then(
      () => log.warn({ key: id }, 'the store had lost the revocation of a key: it is restored'),
      (error: unknown) => {
        // A key that no longer exists needs no revocation.
        if (error instanceof GatewayError && error.kind === 'not_found') return;
        if (!isStopped) setTimeout(() => revokeAgain(id), againMs).unref();
      },
    );
  };
  const watch = new KeyWatch(store, {
    ...(store.changes === null ? {} : { everyMs: heardEveryMs }),
    onKeys(change) {
      isKnown = true;
      options.onChange(change);
      options.tellAll({ type: 'keys', keys: toWire(change) });
    },
    onFault(error) {
      if (error === null) log.info('keys in the store are readable again');
      else log.warn({ err: error }, 'cannot read the keys in the store: the known keys stay in effect');
    },
    onRevived: (ids) => ids.forEach(revokeAgain),
    onDamaged: (keys) =>
      log.error({ keys }, 'keys in the store are damaged, or of a later version of the gateway, and ignored'),
  });
  const endListening = store.changes?.listen((collection) => {
    if (collection === null || collection === announcementCollection) watch.refresh().catch(() => undefined);
  });
  const firstLook = succeeds(watch.refresh(), firstLookMs);

  /** @returns true if every worker has put in force all changes made before the call */
  const isInForce = async (): Promise<boolean> => {
    const isSeen = await succeeds(watch.refresh(), ownLookMs);
    const missing = await options.confirm(confirmMs);
    if (isSeen && missing.length === 0) return true;
    log.warn(
      { seen: isSeen, workers: missing.map(({ pid }) => pid) },
      'a key change is not in effect on all workers yet',
    );
    return false;
  };
  const change = async <Outcome>(
    work: Promise<Outcome>,
    note: (outcome: Outcome) => void,
  ): Promise<Changed<Outcome>> => {
    const outcome = await work;
    note(outcome);
    return { outcome, inForce: await isInForce() };
  };

  return {
    desk: {
      groups: () => new Set(config().groups.map(({ name }) => name)),
      configKeys: () => config().keys,
      configured,
      list: (cursor, limit) => book.list(cursor, limit),
      get: (id) => book.get(id),
      create: (input) => change(book.create(input), ({ record }) => log.info({ key: record.id }, 'key made')),
      update: (id, changes, revision) =>
        change(book.update(id, changes, revision), () => log.info({ key: id }, 'key changed')),
      rotate: (id, graceMs, revision) =>
        change(book.rotate(id, graceMs, revision), () => log.info({ key: id, graceMs }, 'key rotated')),
      revoke: (id) => change(book.revoke(id), () => log.info({ key: id }, 'key revoked')),
    },
    count: () => watch.count(),
    async looked() {
      await firstLook;
    },
    greet: (child) => (isKnown ? tellWhole(child, watch) : Promise.resolve()),
    stop() {
      isStopped = true;
      endListening?.();
      void watch.stop();
    },
  };
}

/** Keys in one message, which is written and read in one turn of the event loop. */
const keysOfPart = 128;

/** How long, in milliseconds, video tasks and conversations may be kept for the key that made them. */
function ownedMs({ store, conversations }: ResolvedConfig): number {
  return Math.max(store.taskDays * dayMs, (conversations?.hours ?? 0) * hourMs);
}

async function tellWhole(
  child: ChildProcess,
  watch: Pick<KeyWatch, 'ids' | 'find' | 'isWhole'>,
): Promise<void> {
  // One by one, since a list of all would take milliseconds.
  const ids = watch.ids();
  let next = ids.next();
  for (let whole = true; whole || next.done !== true; whole = false) {
    const put: ManagedKey[] = [];
    for (let count = 0; count < keysOfPart && next.done !== true; count++) {
      // Its current state: a worker that has received a change must not receive the older key.
      const key = watch.find(next.value);
      if (key !== null) put.push(key);
      next = ids.next();
    }
    // What the watch has not reported yet at the start is sent to all workers.
    const more = next.done !== true || !watch.isWhole;
    const keys = toWire({ whole, put, removed: [], more });
    await sendMessageFully(child, { type: 'keys', keys } satisfies WorkerOrder);
    if (!child.connected) return;
    await nextSlice();
  }
}

/**
 * Finds keys of the config in force by id, with an index. With 100,000 keys, a linear search takes 20 ms for each id.
 */
function createLookup(config: () => ResolvedConfig) {
  let indexed: {
    readonly keys: readonly ResolvedKey[];
    readonly byId: Promise<WideMap<ResolvedKey>>;
  } | null = null;
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, ResolvedKey>> => {
    const { keys } = config();
    if (indexed?.keys !== keys) indexed = { keys, byId: inSlices(byIdSteps(keys)) };
    const byId = await indexed.byId;
    const found = new Map<string, ResolvedKey>();
    for (const id of ids) {
      const key = byId.get(id);
      if (key !== undefined) found.set(id, key);
    }
    return found;
  };
}

function* byIdSteps(keys: readonly ResolvedKey[]): Steps<WideMap<ResolvedKey>> {
  const byId = new WideMap<ResolvedKey>();
  for (const key of keys) {
    byId.set(key.id, key);
    yield;
  }
  return byId;
}

/** @returns false if it fails or takes longer */
function succeeds(work: Promise<void>, mostMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), mostMs);
    work
      .then(
        () => true,
        () => false,
      )
      .then((isDone) => {
        clearTimeout(timer);
        resolve(isDone);
      });
  });
}
