import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { RootDatabase } from 'lmdb';
import { makeFolder } from './folder.js';
import type { Bytes } from './records.js';

/**
 * The function of the `lmdb` package that opens a database. Passed as an argument, since the package is loaded when
 * needed.
 */
export type OpenLmdb = typeof import('lmdb').open;

/** Address space, not memory or disk. lmdb-js can enlarge a full map, but should not have to. */
const mapBytes = 2 ** 30;
/** Of the gate, which has no data. */
const gateBytes = 2 ** 20;
/** Most readers, one per process. */
const readers = 2048;
/** Space that a disk must have before a database is opened on it. */
const probeBytes = 262_144;
/** Descriptors for a probe: LMDB opens its two files with four. */
const descriptors = 5;

/**
 * Position of the magic number and of the format version in a meta page of LMDB (`MDB_meta` in mdb.c), and their
 * values.
 */
const markAt = 24;
const mark = 0xbeefc0de;
const formVersion = 2;
/** Size of both meta pages. */
const leastBytes = 8192;

interface EnvironmentOptions {
  readonly durability: Durability;
  /** Address space for the data. Default: 1 GiB. */
  readonly mapBytes?: number;
}

/**
 * What a crash of the machine may undo, the crash of a process never: with `commit` nothing, and a commit waits for the
 * disk twice; with `order` the last commits, and a commit waits once (`MDB_NOMETASYNC`); with `none` everything.
 */
export type Durability = 'commit' | 'order' | 'none';

/** Databases that are changed together. */
export interface Environment {
  /** @returns the database of that name, which is created if missing */
  database(name: string): Bytes;
  /** Runs a function in a write transaction, which is undone if it throws. One at a time among all processes. */
  change<T>(work: () => T): T;
  /** Copies the current data into an existing folder. */
  copy(folder: string): Promise<void>;
  close(): void;
}

/**
 * Opens an LMDB environment in a folder, which is created if missing. Processes may share it, and each may be killed at
 * any moment. Readers see only complete commits, and the lock of the writer is a robust mutex, which the system
 * releases when its owner dies.
 *
 * To open or change the environment, a process must hold a gate: the write lock of an empty environment in a subfolder.
 * LMDB's own lock is not enough. When it opens a file, it reads the number of the last transaction and later writes the
 * number to the place where all processes read it, without that lock (`mdb_env_open2` in lmdb-js 3.5.6). A commit of
 * another process in between is lost, with anything else that is then written over its pages.
 * @throws Error if it cannot be opened
 */
export function openEnvironment(open: OpenLmdb, folder: string, options: EnvironmentOptions): Environment {
  const gate = openFolder(open, join(folder, 'gate'), { durability: 'none', mapSize: gateBytes });
  const pass = <T>(work: () => T): T => gate.transactionSync(work);
  try {
    const root = pass(() =>
      openFolder(open, folder, { durability: options.durability, mapSize: options.mapBytes ?? mapBytes }),
    );
    return {
      database: (name) =>
        pass(() => root.openDB<Buffer, Buffer>({ name, encoding: 'binary', keyEncoding: 'binary' })),
      change: (work) => pass(() => root.transactionSync(work)),
      copy: (to) => root.backup(to, false),
      close() {
        void root.close();
        void gate.close();
      },
    };
  } catch (error) {
    void gate.close();
    throw error;
  }
}

interface FolderOptions {
  readonly durability: Durability;
  readonly mapSize: number;
}

function openFolder(open: OpenLmdb, folder: string, { durability, mapSize }: FolderOptions): RootDatabase {
  probe(folder);
  return open({
    path: folder,
    noSubdir: false,
    mapSize,
    maxReaders: readers,
    encoding: 'binary',
    keyEncoding: 'binary',
    // A commit ends when the data and then its meta page are on the disk, as in plain LMDB. By default lmdb-js flushes
    // later, so that a crash of the machine could lose a commit that was reported as done.
    overlappingSync: false,
    noSync: durability === 'none',
    noMetaSync: durability === 'order',
  });
}

/**
 * Checks for problems that would make opening fail. If LMDB's own opening fails, lmdb-js 3.5.6 reads memory that it has
 * freed (`EnvWrap::openEnv`), which crashes the process. This happens on a full disk, or with a file that is not a
 * database.
 * @throws Error with the reason
 */
function probe(folder: string): void {
  makeFolder(folder);
  const data = join(folder, 'data.mdb');
  checkForm(data);
  // Not opened for the check: a process that closes a file loses its locks on it, including LMDB's.
  for (const file of [data, join(folder, 'lock.mdb')]) {
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
  }
  const opened: number[] = [];
  try {
    const name = join(folder, `probe-${process.pid}-${performance.now()}`);
    const file = openSync(name, 'w');
    opened.push(file);
    unlinkSync(name);
    const written = writeSync(file, Buffer.alloc(probeBytes));
    if (written < probeBytes) throw new Error(`there is no room in ${folder}`);
    while (opened.length < descriptors) opened.push(openSync(folder, 'r'));
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

function checkForm(data: string): void {
  if (!existsSync(data) || statSync(data).size === 0) return;
  const descriptor = openSync(data, 'r');
  try {
    const head = Buffer.alloc(leastBytes);
    const length = readSync(descriptor, head);
    const whole = length === leastBytes && head.readUInt32LE(markAt) === mark;
    if (!whole || (head.readUInt32LE(markAt + 4) & 0xffff) !== formVersion) {
      throw new Error(`${data} is no database of this form`);
    }
  } finally {
    closeSync(descriptor);
  }
}
