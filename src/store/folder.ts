import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../errors.js';

/**
 * Creates a folder and its missing parents. With `recursive`, Node retries forever if a folder exists but the system
 * reports that one below it does not, as in /proc.
 * @throws Error of the system
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process has created it meanwhile.
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/** Folder for content that appears at another place once complete. */
interface FolderInMaking {
  readonly path: string;
  /**
   * Moves the content to its place.
   * @throws Error if there is something by now
   */
  finish(): void;
  /** Removes the content. */
  discard(): void;
}

/** Names of folders whose content is not complete. */
const unfinished = /^(?:import|backup)-\d+$/;
/** At the root of a file system. */
const ofFileSystem = 'lost+found';

/**
 * Creates a folder to fill with what is to appear at `place`. An empty folder that is there already stays, and is filled
 * from inside: it may be the root of a file system, or the only folder in which this user may write.
 * @param purpose part of its name
 * @throws Error if the place is no folder, or has something in it
 */
export function makeAside(place: string, purpose: string): FolderInMaking {
  const name = `${purpose}-${process.pid}`;
  const isThere = existsSync(place);
  const path = isThere ? join(place, name) : `${place}.${name}`;
  checkEmpty(place, name);
  // In a container, a process that was killed may have had the same id.
  if (existsSync(path)) rmSync(path, { recursive: true });
  makeFolder(path);
  return {
    path,
    finish() {
      checkEmpty(place, name);
      if (!isThere) {
        renameSync(path, place);
        return;
      }
      for (const each of readdirSync(path)) renameSync(join(path, each), join(place, each));
      rmdirSync(path);
    },
    discard: () => rmSync(path, { recursive: true, force: true }),
  };
}

function checkEmpty(folder: string, except: string): void {
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is no folder`);
  const others = readdirSync(folder).filter((name) => name !== ofFileSystem && name !== except);
  if (others.length === 0) return;
  const hint = others.every((name) => unfinished.test(name))
    ? `: ${others.join(', ')}, which a command left that was killed or is still running; if none is, delete it`
    : '';
  throw new Error(`there is something in ${folder} already${hint}`);
}

/** Bytes of a block as the system counts them (stat(2)). */
const blockBytes = 512;

/**
 * Measures how much of the disk a folder takes. Files of an embedded store are sparse: only written blocks count.
 * @returns bytes; null for a folder that cannot be read
 */
export async function bytesOfFolder(path: string): Promise<number | null> {
  try {
    const entries = await readdir(path, { recursive: true });
    const sizes = await Promise.all(entries.map((entry) => stat(join(path, entry))));
    return sizes.reduce((sum, { blocks }) => sum + blocks * blockBytes, 0);
  } catch {
    // Nothing was stored yet, or a file was removed after it was listed.
    return null;
  }
}
