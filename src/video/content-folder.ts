import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeptVideos } from '../config/types.js';
import { errorCode } from '../errors.js';
import { makeFolder } from '../store/folder.js';
import { processHost } from '../store/process-mark.js';
import type { Store } from '../store/store.js';

const types = { mp4: 'video/mp4', webm: 'video/webm', mov: 'video/quicktime' } as const;
const endings = ['mp4', 'webm', 'mov'] as const;

/** Nothing else is made, opened or removed in the folder. */
const idForm = /^video_[0-9a-f]{32}$/;
const fileForm = /^video_[0-9a-f]{32}\.(?:mp4|webm|mov)$/;
const partForm = /^\.video_[0-9a-f]{32}\.[0-9a-f]{16}\.part$/;

const dayMs = 24 * 60 * 60 * 1000;
/** A part that nobody has written to for so long was left by a process that was killed. */
const abandonedMs = 60 * 60 * 1000;

/** Shorter than the minute after which each process asks again, so that clocks that drift leave no sweep out. */
const turnMs = 50_000;

/** A video that is kept, open for reading. Whoever has it closes `handle`. */
export interface KeptFile {
  readonly handle: FileHandle;
  readonly bytes: number;
  readonly contentType: string;
}

/**
 * Opens the video of a task.
 * @returns null where it is not kept, or no longer
 * @throws the system's error for a file that cannot be opened
 */
export async function openKept({ folder, days }: KeptVideos, taskId: string): Promise<KeptFile | null> {
  if (!idForm.test(taskId)) return null;
  for (const ending of endings) {
    const handle = await openThere(join(folder, `${taskId}.${ending}`));
    if (handle === null) continue;
    const bytes = await sizeKept(handle, days);
    if (bytes !== null) return { handle, bytes, contentType: types[ending] };
    await handle.close();
  }
  return null;
}

/** @throws the system's error for a file that cannot be opened */
export async function isKept(videos: KeptVideos, taskId: string): Promise<boolean> {
  const kept = await openKept(videos, taskId);
  await kept?.handle.close();
  return kept !== null;
}

/** @returns the size of what is open; null for what is no file, or kept for too long. Closes it where it throws. */
async function sizeKept(handle: FileHandle, days: number): Promise<number | null> {
  try {
    const stats = await handle.stat();
    return stats.isFile() && Date.now() - stats.mtimeMs < days * dayMs ? stats.size : null;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Never waits for a writer, as of a pipe. @returns null for what is not there, or a link */
async function openThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes(errorCode(error))) return null;
    throw error;
  }
}

/** @returns whether a video of that type is told as such when it is kept; what is of no type here is told as MP4 */
export function isKeptType(contentType: string): boolean {
  return endingOf(contentType) !== undefined;
}

function endingOf(contentType: string): keyof typeof types | undefined {
  const type = contentType.toLowerCase();
  return endings.find((each) => types[each] === type);
}

/** A video that is being written. It is kept once `finish` resolves; else `discard` is to be called. */
export interface PartFile {
  /** @throws RangeError beyond the bytes that one video may have */
  write(chunk: Buffer): Promise<void>;
  /**
   * Durable when it resolves.
   * @param createdAt Unix milliseconds: from when on the video is kept
   */
  finish(contentType: string, createdAt: number): Promise<void>;
  /** Never rejects. */
  discard(): Promise<void>;
}

/**
 * Begins to keep the video of a task, under a name that nobody opens.
 * @throws RangeError for an id that is none of ours; the system's error where nothing can be written
 */
export async function beginKept({ folder, fileBytes }: KeptVideos, taskId: string): Promise<PartFile> {
  if (!idForm.test(taskId)) throw new RangeError('a video may only be kept under the id of a task');
  makeFolder(folder);
  const path = join(folder, `.${taskId}.${randomBytes(8).toString('hex')}.part`);
  const handle = await open(path, 'wx', 0o600);
  let bytes = 0;
  return {
    async write(chunk) {
      bytes += chunk.length;
      if (bytes > fileBytes) throw new RangeError(`the video is larger than ${fileBytes} bytes`);
      await handle.writeFile(chunk);
    },
    async finish(contentType, createdAt) {
      const kept = new Date(createdAt);
      await handle.sync();
      await rename(path, join(folder, `${taskId}.${endingOf(contentType) ?? 'mp4'}`));
      // Not before: a part that is as old as a task may be is one that a sweep takes for abandoned.
      await handle.utimes(kept, kept);
      await handle.sync();
      await handle.close();
      await syncFolder(folder);
    },
    async discard() {
      await handle.close().catch(() => {});
      await rm(path, { force: true }).catch(() => {});
    },
  };
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Removes what is kept for too long, what a process left that was killed, and the oldest videos until all are within
 * their bytes.
 * @throws the system's error for the first file that cannot be removed, once all others are
 */
export async function sweepKept({ folder, days, bytes }: KeptVideos): Promise<void> {
  const now = Date.now();
  const files: { readonly path: string; readonly size: number; readonly mtimeMs: number }[] = [];
  const faults: unknown[] = [];
  const remove = async (path: string): Promise<boolean> => {
    try {
      await rm(path, { force: true });
      return true;
    } catch (fault) {
      faults.push(fault);
      return false;
    }
  };
  let total = 0;
  for (const name of await namesIn(folder)) {
    const isVideo = fileForm.test(name);
    if (!isVideo && !partForm.test(name)) continue;
    const path = join(folder, name);
    const stats = await lstat(path).catch(() => null);
    if (stats === null || !stats.isFile()) continue;
    const { size, mtimeMs } = stats;
    const isOver = now - mtimeMs >= (isVideo ? days * dayMs : abandonedMs);
    if (isOver && (await remove(path))) continue;
    total += size;
    if (isVideo && !isOver) files.push({ path, size, mtimeMs });
  }
  for (const { path, size } of files.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (total <= bytes) break;
    if (await remove(path)) total -= size;
  }
  if (faults.length > 0) throw faults[0];
}

/**
 * The same for all processes of a host, of which one does it a minute: each looks at every file, which takes half a second of
 * a processor where there are ten thousand. Nothing where there is no folder yet.
 * @throws {GatewayError} of the store; as `sweepKept` does
 */
export async function sweepInTurn(store: Pick<Store, 'claim'>, kept: KeptVideos): Promise<void> {
  if (!existsSync(kept.folder)) return;
  if (await store.claim(`sweep:${processHost()}:${kept.folder}`, turnMs)) await sweepKept(kept);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
