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

/** The part of the `lmdb` package that opens; taken as an argument, because the package is loaded when it is needed. */
export type OpenLmdb = typeof import('lmdb').open;

/** Address space, not memory and not disk. lmdb-js makes a map larger that was filled, but need not do so here. */
const mapBytes = 2 ** 30;
/** The gate's holds nothing. */
const gateBytes = 2 ** 20;
/** One per process. */
const readers = 2048;
/** Room that a disk must have before a database is opened on it. */
const probeBytes = 262_144;
/** LMDB opens its two files by four descriptors. */
const descriptors = 5;

/** Where a meta page of LMDB has its mark and the version of its form (`MDB_meta` in mdb.c), and their values. */
const markAt = 24;
const mark = 0xbeefc0de;
const formVersion = 2;
/** Both meta pages. */
const leastBytes = 8192;

interface EnvironmentOptions {
  /** False: a commit does not wait for the disk, and a crash of the machine (not of a process) may lose all of it. */
  readonly durable: boolean;
  /** Address space for the data; 1 GiB unless said otherwise. */
  readonly mapBytes?: number;
}

/** Databases that are changed together. */
export interface Environment {
  /** @returns the database of that name, which is made when it is missing */
  database(name: string): Bytes;
  /** Runs work in a write transaction; one that throws is undone. One at a time, over all processes. */
  change<T>(work: () => T): T;
  /** Copies what is there at this moment into a folder, which has to be there. */
  copy(folder: string): Promise<void>;
  close(): void;
}

/**
 * Opens an LMDB environment in a folder, which is made when it is missing. Processes may share it, and each may be
 * killed at any moment: readers see only whole commits, and the lock of the writer is a robust mutex, which the
 * system gives to the next one when its owner dies.
 *
 * Whoever opens or changes it passes a gate: the write lock of an empty environment in a folder below. LMDB's own lock
 * is not enough. When it opens a file, it reads the number of the last transaction and later writes it to where all
 * processes look for it, without that lock (`mdb_env_open2` in lmdb-js 3.5.6); a commit of another process in between
 * is lost, with whatever else is then written over its pages.
 * @throws Error when it cannot be opened
 */
export function openEnvironment(open: OpenLmdb, folder: string, options: EnvironmentOptions): Environment {
  const gate = openFolder(open, join(folder, 'gate'), { durable: false, mapSize: gateBytes });
  const pass = <T>(work: () => T): T => gate.transactionSync(work);
  try {
    const root = pass(() =>
      openFolder(open, folder, { durable: options.durable, mapSize: options.mapBytes ?? mapBytes }),
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
  readonly durable: boolean;
  readonly mapSize: number;
}

function openFolder(open: OpenLmdb, folder: string, { durable, mapSize }: FolderOptions): RootDatabase {
  probe(folder);
  return open({
    path: folder,
    noSubdir: false,
    mapSize,
    maxReaders: readers,
    encoding: 'binary',
    keyEncoding: 'binary',
    // A commit ends with the data and then its meta page on the disk, in the old way of LMDB: by default lmdb-js has
    // the flush follow later, and a commit could be lost with the machine that was told to be done.
    overlappingSync: false,
    noSync: !durable,
  });
}

/**
 * Finds out what would make an opening fail. When LMDB's own opening fails, lmdb-js 3.5.6 reads memory that it has
 * freed (`EnvWrap::openEnv`), and that ends the process: on a full disk, or over a file that is no database.
 * @throws Error with the reason
 */
function probe(folder: string): void {
  makeFolder(folder);
  const data = join(folder, 'data.mdb');
  checkForm(data);
  // The lock file is not opened to try it: a process that closes a file loses its locks on it, LMDB's too.
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
