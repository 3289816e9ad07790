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

/**
 * Fetches files one after the other, each URL once.
 * @param waiting ends it when the client leaves; then the promise never settles
 * @returns the files by their URLs
 * @throws {GatewayError} `invalid_value` with the path as its `param`, for the first that cannot be had
 */
export async function fetchFiles(
  wanted: readonly WantedFile[],
  { maxBytes, timeoutMs, hosts, dialer, owner, rate, hold }: FetchBounds,
  waiting: Pick<WaitingClient, 'cancel'>,
): Promise<ReadonlyMap<string, Downloaded>> {
  const deadline = performance.now() + timeoutMs;
  const files = new Map<string, Downloaded>();
  let left = maxBytes;
  for (const { url, at } of wanted) {
    if (files.has(url)) continue;
    const held = maxBytes - left;
    const bounds = {
      ...hosts,
      dialer,
      owner,
      maxBytes: left,
      timeoutMs: Math.max(1, deadline - performance.now()),
      rate,
      hold: (bytes: number) => hold(held + bytes),
    };
    const result = await new Promise<Downloaded | GatewayError>((resolve) => {
      waiting.cancel = download(url, bounds, resolve);
    });
    if (result instanceof GatewayError) {
      if (result.status === 503) throw result;
      const message = at === null ? result.message : `${at}: ${result.message}`;
      throw new GatewayError(result.kind, message, { param: at, cause: result.cause });
    }
    left -= result.bytes.length;
    files.set(url, result);
  }
  return files;
}
