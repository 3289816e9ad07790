import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { StoreSettings } from '../config/types.js';
import { createEmbeddedStore } from './embedded.js';
import { createPostgresStore } from './postgres.js';
import { createPostgresShares } from './postgres-shares.js';
import { createRecordAccounts } from './record-accounts.js';
import type { ShareStore } from './shares.js';
import type { WholeStore } from './whole-store.js';

/** Makes the store that the config names. Its server or its disk need not be there yet. */
export function createStore(settings: StoreSettings): WholeStore {
  if (settings.kind === 'postgres') return createPostgresStore(settings);
  const store = createEmbeddedStore(settings);
  const removal = watchFiles(settings.path);
  const risks = async () => {
    const found = folderRisks(settings.path, 'store.path');
    return found.length > 0 ? found : removal();
  };
  return { ...store, accounts: createRecordAccounts(store), changes: null, risks };
}

/**
 * The same store for somebody who looks often and changes little: as long as nobody has stored anything, there is nothing
 * to read, and looking does not make the files of an embedded store.
 */
export function withoutMaking(store: WholeStore, settings: StoreSettings): WholeStore {
  let isMade = false;
  const isThere = (): boolean => {
    isMade ||= mayHoldAnything(settings);
    return isMade;
  };
  return {
    ...store,
    get: async (collection, id) => (isThere() ? store.get(collection, id) : null),
    list: async (...asked) => (isThere() ? store.list(...asked) : { records: [], next: null }),
    readLines: async (...asked) => (isThere() ? store.readLines(...asked) : { lines: [], next: null }),
    readSums: async (...asked) => (isThere() ? store.readSums(...asked) : { sums: [], next: null }),
  };
}

/**
 * Why nothing can be kept in a folder, which is made when it is first needed.
 * @param setting names it in the config
 */
export function folderRisks(path: string, setting: string): readonly string[] {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const advice = `give the user of the gateway the right to, or name another ${setting}`;
  try {
    if (!statSync(folder).isDirectory())
      return [`nothing can be kept in ${path}: ${folder} is no folder; name another ${setting}`];
    accessSync(folder, constants.W_OK | constants.X_OK);
    return [];
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    return [`nothing can be kept in ${path}: ${folder} cannot be written (${code}); ${advice}`];
  }
}

/** Without these a store is another one. */
const lastingFiles = ['records/data.mdb', 'ledgers/data.mdb'];

/**
 * Notices that a store has been removed, or another one put in its place. Whoever has it open does not: the system keeps
 * the files for them until they end, and what they keep meanwhile is lost then.
 */
function watchFiles(path: string): () => readonly string[] {
  const seen = new Map<string, number>();
  return () => {
    const isAnother = lastingFiles.some((name) => {
      const inode = statSync(join(path, name), { throwIfNoEntry: false })?.ino;
      const before = seen.get(name) ?? inode;
      if (before !== undefined) seen.set(name, before);
      return inode !== before;
    });
    if (!isAnother) return [];
    return [
      `${path} was removed or replaced while the gateway uses it: what it keeps is lost when it ends; put the folder back in place, and restart the gateway`,
    ];
  };
}

/** Whether something may have been stored: looking into a store that was never used would make its files. */
export function mayHoldAnything(settings: StoreSettings): boolean {
  return settings.kind !== 'embedded' || existsSync(settings.path);
}

/** Makes what hosts divide limits by; null for a store that one host has to itself. */
export function createShareStore(settings: StoreSettings): ShareStore | null {
  return settings.kind === 'embedded' ? null : createPostgresShares(settings);
}
