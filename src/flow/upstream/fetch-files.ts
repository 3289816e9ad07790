import { performance } from 'node:perf_hooks';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { type Downloaded, download } from '../../upstream/download.js';
import type { RemoteOptions } from '../../upstream/remote-url.js';
import { rateBound } from '../body/intake.js';
import { type Call, timeLeft } from '../call.js';
import type { Services } from '../services.js';
import type { Waiter } from './collect.js';

/** Bounds on fetching the files of a call, beside the time that the call has left. */
interface FetchBounds {
  /** Total bytes of all files. */
  readonly maxBytes: number;
  /** Milliseconds for each file. */
  readonly longestMs: number;
  /** The hosts that they may be fetched from. */
  readonly hosts: RemoteOptions;
  /**
   * Takes memory for the total number of bytes that they are about to hold.
   * @throws {GatewayError} if there is no room for them
   */
  readonly hold: (bytes: number) => void;
}

/** A file to fetch by its URL. */
export interface WantedFile {
  readonly url: string;
  /** Path of the URL in the client's body, or null if the client did not name it. */
  readonly at: string | null;
}

/** What is kept of a fetched file, and how many bytes of memory it holds. */
interface KeptFile<Kept> {
  readonly kept: Kept;
  readonly bytes: number;
}

interface Fetching<Wanted, Kept> {
  readonly wanted: readonly Wanted[];
  readonly bounds: FetchBounds;
  /**
   * Cancels the fetch when the client disconnects. After that, as after an unexpected exception, the promise never settles.
   */
  readonly waiting: Waiter;
  /** Makes what is kept of each file. Calls `hold` before with the bytes that this needs in addition. */
  readonly keep: (file: Downloaded, wanted: Wanted, hold: (bytes: number) => void) => KeptFile<Kept>;
}

/**
 * Fetches the files of a call one after the other, each URL once. The remaining bounds are then known, and few calls have
 * more than one file.
 * @returns what is kept of the files, by their URLs
 * @throws {GatewayError} `invalid_value` with the path as its `param`, for the first file that cannot be fetched
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
 * Returns where a file may be fetched from whose URL an upstream has given: at a private address only if the config allows
 * it, or from the upstream itself, which is reached there anyway and in the same way.
 */
export function fileHosts(call: Pick<Call, 'running'>, upstream: Upstream): RemoteOptions {
  const { origin } = upstream;
  const privateOrigin = `${origin.secure ? 'https' : 'http'}://${origin.authority}`;
  return { ...mediaHosts(call, upstream), privateOrigin, ownRoute: origin };
}

/** Returns where a file may be fetched from whose URL a client has given, for an upstream that accepts only its bytes. */
export function mediaHosts({ running }: Pick<Call, 'running'>, { fetchPrivate }: Upstream): RemoteOptions {
  const { fetch } = running.snapshot;
  return { allowPrivate: fetchPrivate, rules: fetch, proxy: fetch.proxy };
}
