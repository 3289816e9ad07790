import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { StoreSettings } from '../config/types.js';
import { createEmbeddedStore } from './embedded.js';
import { bytesOfFolder } from './folder.js';
import { createPostgresStore } from './postgres.js';
import { createPostgresShares } from './postgres-shares.js';
import { createRecordAccounts } from './record-accounts.js';
import type { ShareStore } from './shares.js';
import type { WholeStore } from './store.js';

/** Creates the store of the config. Its server or disk need not be available yet. */
export function createStore(settings: StoreSettings): WholeStore {
  if (settings.kind === 'postgres') return createPostgresStore(settings);
  const store = createEmbeddedStore(settings);
  const removal = watchFiles(settings.path);
  const risks = async () => {
    const found = folderRisks(settings.path, 'store.path');
    return found.length > 0 ? found : removal();
  };
  const refusal = async (): Promise<string | null> => {
    if (!mayHoldAnything(settings)) return null;
    return store.get('any', 'any').then(() => null, reasonOf);
  };
  const size = () => bytesOfFolder(settings.path);
  return { ...store, accounts: createRecordAccounts(store), changes: null, risks, size, refusal };
}

/** Returns why a call of a store failed. */
function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : String(cause);
}

/**
 * Wraps a store for a user that reads often and writes little. While nothing was ever stored, reads return nothing, and
 * do not create the files of an embedded store.
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
 * Reports why nothing can be kept in a folder. The folder itself is created when it is first needed.
 * @param setting its name in the config
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

/** If one of these files is another, the store was replaced. */
const lastingFiles = ['records/data.mdb', 'ledgers/data.mdb'];

/**
 * Detects that a store was removed or replaced. Processes that have it open do not notice: the system keeps its files
 * until they end, and what was stored meanwhile is then lost.
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

/** Whether something may have been stored. Reading an embedded store that was never used would create its files. */
export function mayHoldAnything(settings: StoreSettings): boolean {
  return settings.kind !== 'embedded' || existsSync(settings.path);
}

/** Creates the store by which hosts divide limits. Null for a store of a single host. */
export function createShareStore(settings: StoreSettings): ShareStore | null {
  return settings.kind === 'embedded' ? null : createPostgresShares(settings);
}
