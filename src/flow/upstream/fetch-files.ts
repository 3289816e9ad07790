import { performance } from 'node:perf_hooks';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { type Downloaded, download } from '../../upstream/download.js';
import type { RemoteOptions } from '../../upstream/remote-url.js';
import { rateBound } from '../body/intake.js';
import { type Call, timeLeft } from '../call.js';
import type { Services } from '../services.js';
import type { Waiter } from './ask.js';

/** What bounds the fetching of the files of a call, beside the time that the call has left. */
interface FetchBounds {
  /** Bytes of all files together. */
  readonly maxBytes: number;
  /** Milliseconds for one of them. */
  readonly longestMs: number;
  /** Where they may be. */
  readonly hosts: RemoteOptions;
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
interface KeptFile<Kept> {
  readonly kept: Kept;
  readonly bytes: number;
}

interface Fetching<Wanted, Kept> {
  readonly wanted: readonly Wanted[];
  readonly bounds: FetchBounds;
  /** Ends it when the client leaves; then, as after a fault of ours, the promise never settles. */
  readonly waiting: Waiter;
  /** Says what is to be kept of each; and beforehand, by `hold`, what more than that it takes up. */
  readonly keep: (file: Downloaded, wanted: Wanted, hold: (bytes: number) => void) => KeptFile<Kept>;
}

/**
 * Fetches the files of a call one after the other, each URL once: what is left of the bounds is then known, and few calls
 * have more than one.
 * @returns what is kept of the files, by their URLs
 * @throws {GatewayError} `invalid_value` with the path as its `param`, for the first that cannot be had
 */
export async function fetchFiles<Wanted extends WantedFile, Kept>(
  { dialer }: Services,
  call: Call,
  { wanted, bounds, waiting, keep }: Fetching<Wanted, Kept>,
): Promise<ReadonlyMap<string, Kept>> {
  const rate = rateBound(call.running.snapshot);
  const deadline = performance.now() + timeLeft(call);
  const files = new Map<string, Kept>();
  let maxBytes = bounds.maxBytes;
  let held = 0;
  for (const each of wanted) {
    const { url, at } = each;
    if (files.has(url)) continue;
    const before = held;
    const hold = (bytes: number): void => bounds.hold(before + bytes);
    const timeoutMs = Math.min(bounds.longestMs, Math.max(1, deadline - performance.now()));
    const result = await new Promise<Downloaded | GatewayError>((resolve) => {
      const asked = { ...bounds.hosts, dialer, owner: call, maxBytes, timeoutMs, rate, hold };
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

/**
 * Where a file may be that an upstream has named by its URL: at a private address only if the config says so, or on
 * the upstream itself, which is reached there anyway, and in the same way.
 */
export function fileHosts(call: Pick<Call, 'running'>, upstream: Upstream): RemoteOptions {
  const { origin } = upstream;
  const privateOrigin = `${origin.secure ? 'https' : 'http'}://${origin.authority}`;
  return { ...mediaHosts(call, upstream), privateOrigin, ownRoute: origin };
}

/** Where a file may be that a client has named, for an upstream that takes it only as bytes. */
export function mediaHosts({ running }: Pick<Call, 'running'>, { fetchPrivate }: Upstream): RemoteOptions {
  const { fetch } = running.snapshot;
  return { allowPrivate: fetchPrivate, rules: fetch, proxy: fetch.proxy };
}
