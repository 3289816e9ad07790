import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeptVideos } from '../config/types.js';
import { errorCode } from '../errors.js';
import { makeFolder } from '../store/folder.js';
import { processSpace } from '../store/process-mark.js';
import type { Store } from '../store/store.js';

const types = { mp4: 'video/mp4', webm: 'video/webm', mov: 'video/quicktime' } as const;
const endings = ['mp4', 'webm', 'mov'] as const;

/** Names in the folder; no other file is created, opened or removed there. */
const idForm = /^video_[0-9a-f]{32}$/;
const fileForm = /^video_[0-9a-f]{32}\.(?:mp4|webm|mov)$/;
const partForm = /^\.video_[0-9a-f]{32}\.[0-9a-f]{16}\.part$/;

const dayMs = 24 * 60 * 60 * 1000;
/** A part file without a write for this long was left by a process that was killed. */
const abandonedMs = 60 * 60 * 1000;

/** Shorter than the minute between the tries of each process, so that clock drift skips no sweep. */
const turnMs = 50_000;

/** A kept video, open for reading. The holder closes `handle`. */
export interface KeptFile {
  readonly handle: FileHandle;
  readonly bytes: number;
  readonly contentType: string;
}

/**
 * Opens the kept video of a task.
 * @returns null if it is not kept, or no longer
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

/** @returns the size of an open file; null if it is not a regular file or was kept too long. Closes it before throwing. */
async function sizeKept(handle: FileHandle, days: number): Promise<number | null> {
  try {
    const stats = await handle.stat();
    return stats.isFile() && Date.now() - stats.mtimeMs < days * dayMs ? stats.size : null;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Opens without blocking on a pipe. @returns null for a path that does not exist or is a symbolic link */
async function openThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes(errorCode(error))) return null;
    throw error;
  }
}

/** Whether kept videos of that type are served with it; videos without a known type are served as MP4. */
export function isKeptType(contentType: string): boolean {
  return endingOf(contentType) !== undefined;
}

function endingOf(contentType: string): keyof typeof types | undefined {
  const type = contentType.toLowerCase();
  return endings.find((each) => types[each] === type);
}

/** A video being written. It is kept once `finish` resolves; otherwise the caller calls `discard`. */
export interface PartFile {
  /** @throws RangeError beyond the bytes that one video may have */
  write(chunk: Buffer): Promise<void>;
  /**
   * Durable when it resolves.
   * @param createdAt Unix milliseconds from which the days of keeping count
   */
  finish(contentType: string, createdAt: number): Promise<void>;
  /** Never rejects. */
  discard(): Promise<void>;
}

/**
 * Begins to write the video of a task, under a temporary name that no reader opens.
 * @throws RangeError for an id that is not a task's; the system's error when the folder is not writable
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
      // Not earlier: a sweep would treat a part file with the age of the task as abandoned.
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
 * Removes expired videos, part files left by killed processes, and then the oldest videos until the rest fits the bytes.
 * @throws the system's error for the first file that cannot be removed, after all others were
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
 * Runs `sweepKept` in one process of a host per minute: a sweep of ten thousand files takes half a second of CPU. No-op
 * while the folder does not exist.
 * @throws {GatewayError} the store's error; also as `sweepKept`
 */
export async function sweepInTurn(store: Pick<Store, 'claim'>, kept: KeptVideos): Promise<void> {
  if (!existsSync(kept.folder)) return;
  if (await store.claim(`sweep:${processSpace()}:${kept.folder}`, turnMs)) await sweepKept(kept);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
