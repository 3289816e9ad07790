import { performance } from 'node:perf_hooks';
import { GatewayError, type Guarded } from '../errors.js';
import type { Dialer } from '../upstream/dialer.js';
import { type Downloaded, download } from '../upstream/download.js';
import type { RateBound } from '../upstream/least-rate.js';
import type { RemoteOptions } from '../upstream/remote-url.js';
import type { WaitingClient } from './attend.js';

/** What bounds the fetching of the files of a call. */
export interface FetchBounds {
  /** Bytes of all files together. */
  readonly maxBytes: number;
  /** Milliseconds for all of them together. */
  readonly timeoutMs: number;
  /** For one of them, where that is to be less. */
  readonly longestMs?: number;
  /** Where they may be. */
  readonly hosts: RemoteOptions;
  readonly dialer: Dialer;
  /** For what they are fetched: after a fault of ours, which ends that, the promise never settles either. */
  readonly owner: Guarded;
  /** How slow each of them may be. */
  readonly rate: RateBound;
  /**
   * They are about to take up so many bytes of memory in all.
   * @throws {GatewayError} when there is no room for them
   */
  readonly hold: (bytes: number) => void;
}

/** A file by its URL. */
export interface WantedFile {
  readonly url: string;
  /** Path of the URL in the client's body, or null where the client did not name it. */
  readonly at: string | null;
}

/** What is kept of a file that has come, and how many bytes of memory that takes up. */
export interface KeptFile<Kept> {
  readonly kept: Kept;
  readonly bytes: number;
}

/**
 * Fetches files one after the other, each URL once: what is left of the bounds is then known, and few calls have more than
 * one.
 * @param waiting ends it when the client leaves; then the promise never settles
 * @param keep what is to be kept of each; it says beforehand what more than that it takes up
 * @returns what is kept of the files, by their URLs
 * @throws {GatewayError} `invalid_value` with the path as its `param`, for the first that cannot be had
 */
export async function fetchFiles<Wanted extends WantedFile, Kept>(
  wanted: readonly Wanted[],
  bounds: FetchBounds,
  waiting: Pick<WaitingClient, 'cancel'>,
  keep: (file: Downloaded, wanted: Wanted, hold: (bytes: number) => void) => KeptFile<Kept>,
): Promise<ReadonlyMap<string, Kept>> {
  const { dialer, owner, rate, longestMs = Number.POSITIVE_INFINITY } = bounds;
  const deadline = performance.now() + bounds.timeoutMs;
  const files = new Map<string, Kept>();
  let maxBytes = bounds.maxBytes;
  let held = 0;
  for (const each of wanted) {
    const { url, at } = each;
    if (files.has(url)) continue;
    const before = held;
    const hold = (bytes: number): void => bounds.hold(before + bytes);
    const timeoutMs = Math.min(longestMs, Math.max(1, deadline - performance.now()));
    const result = await new Promise<Downloaded | GatewayError>((resolve) => {
      const asked = { ...bounds.hosts, dialer, owner, maxBytes, timeoutMs, rate, hold };
      waiting.cancel = download(url, asked, resolve);
    });
    if (result instanceof GatewayError) {
      if (result.status === 503) throw result;
      const message = at === null ? result.message : `${at}: ${result.message}`;
      throw new GatewayError(result.kind, message, { param: at, cause: result.cause });
    }
    const { kept, bytes } = keep(result, each, hold);
    maxBytes -= result.bytes.length;
    held += bytes;
    files.set(url, kept);
  }
  return files;
}
