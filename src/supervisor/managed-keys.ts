import type { ChildProcess } from 'node:child_process';
import type { Logger } from 'pino';
import type { Changed, KeyDesk } from '../admin/keys.js';
import type { ResolvedConfig, ResolvedKey } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import { announcementCollection } from '../keys/key-announcements.js';
import { KeyBook } from '../keys/key-book.js';
import { KeyWatch } from '../keys/key-watch.js';
import { toWire } from '../keys/key-wire.js';
import type { KeyChange } from '../keys/managed-key.js';
import type { Store } from '../store/store.js';
import type { WholeStore } from '../store/whole-store.js';
import { inSlices, nextSlice, type Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import { told } from './keep.js';
import type { WorkerOrder } from './messages.js';
import { Rounds } from './rounds.js';

/** Longest wait of a start for the keys of the store; after it, it goes on with those of the config. */
const firstLookMs = 3000;
/** Longest wait until the primary itself has seen a change that it has just made. */
const ownLookMs = 1000;
/** Longest wait for a worker: one that is stuck must not hold up the operator who revokes a key. */
const confirmMs = 1000;
/** How often keys are looked at where the store tells of changes itself. */
const heardEveryMs = 500;
/** A revocation that the store does not take is told again after so long. */
const againMs = 1000;

interface ManagedKeysOptions {
  readonly store: Store & Pick<WholeStore, 'changes'>;
  /** The config in force at this moment. */
  config(): ResolvedConfig;
  /** Tells every worker. @returns to whom it was told */
  tellAll(order: WorkerOrder): readonly ChildProcess[];
  /** Hears of each change before the workers do. */
  onChange(change: KeyChange): void;
  readonly log: Logger;
}

/** The keys that operators make at run time: the primary follows those of the store, and its workers follow it. */
export interface ManagedKeys {
  readonly desk: KeyDesk;
  /** Keys that are not revoked, as far as they are known. */
  count(): number;
  /** Resolves once the keys of the store are known, or cannot be had for now. */
  looked(): Promise<void>;
  /**
   * Tells a worker all of them, which it knows once this resolves: what changes meanwhile, too. While they are not known, it
   * is told nothing, and with all others then.
   */
  greet(child: ChildProcess): Promise<void>;
  /** A worker has in force what it was told before it was asked under this number. */
  onConfirmed(child: ChildProcess, number: number): void;
  onGone(child: ChildProcess): void;
  stop(): void;
}

/**
 * Keeps the managed keys of the store in force on every worker, whoever changes them: this process, whose operators are
 * answered only then, or that of another host.
 */
export function createManagedKeys(options: ManagedKeysOptions): ManagedKeys {
  const { log, config, store } = options;
  const confirmations = new Rounds<ChildProcess, null>();
  let isKnown = false;
  let isStopped = false;

  const configured = createLookup(config);
  const book = new KeyBook(store, {
    taken: async (id) => (await configured([id])).has(id),
  });
  /** The store has gone back to before a revocation: hosts that start from now on would not know of it. */
  const revokeAgain = (id: string): void => {
    book.revoke(id).then(
      () => log.warn({ key: id }, 'the store had lost the revocation of a key: it is restored'),
      (error: unknown) => {
        // Nothing is left to be revoked of a key that is gone.
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
    onDamaged: (keys) => log.error({ keys }, 'keys in the store are damaged and ignored'),
  });
  const endListening = store.changes?.listen((collection) => {
    if (collection === null || collection === announcementCollection) watch.refresh().catch(() => undefined);
  });
  const firstLook = succeeds(watch.refresh(), firstLookMs);

  /** @returns true when every worker has in force what was changed before the call */
  const isInForce = async (): Promise<boolean> => {
    const isSeen = await succeeds(watch.refresh(), ownLookMs);
    const ask = (number: number) => options.tellAll({ type: 'confirm-keys', number });
    const { missing } = await confirmations.begin(ask, confirmMs);
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
    onConfirmed: (child, number) => confirmations.onAnswer(child, number, null),
    onGone: (child) => confirmations.onGone(child),
    stop() {
      isStopped = true;
      endListening?.();
      void watch.stop();
    },
  };
}

/** Keys of one message: it is written and read at once. */
const keysOfPart = 128;

async function tellWhole(
  child: ChildProcess,
  watch: Pick<KeyWatch, 'ids' | 'find' | 'isWhole'>,
): Promise<void> {
  const ids = watch.ids();
  for (let from = 0; from === 0 || from < ids.length; from += keysOfPart) {
    // As they are now: who was told of a change must not be told of the key before it.
    const put = ids.slice(from, from + keysOfPart).flatMap((id) => watch.find(id) ?? []);
    // What the watch itself has still to tell at the start comes to all workers.
    const more = from + keysOfPart < ids.length || !watch.isWhole;
    const keys = toWire({ whole: from === 0, put, removed: [], more });
    await told(child, { type: 'keys', keys } satisfies WorkerOrder);
    if (!child.connected) return;
    await nextSlice();
  }
}

/** Finds keys of the config in force by their ids: with 100,000, to look at all of them for each one takes 20 ms. */
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

/** @returns false when it fails, or takes longer */
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
