import { performance } from 'node:perf_hooks';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { type Downloaded, download } from '../../upstream/download.js';
import type { RemoteOptions } from '../../upstream/remote-url.js';
import { rateBound } from '../body/intake.js';
import { type Call, timeLeft } from '../call.js';
import { setHeldBytes } from '../memory-budget.js';
import type { Services } from '../services.js';
import type { Cancellable } from './collect.js';

/** One call may take at most this fraction of the worker's memory budget. */
const fetchShare = 8;

/** Bounds on fetching the files of a call, beside the time that the call has left. */
interface FetchBounds {
  /** Total bytes of all files. */
  readonly maxBytes: number;
  /** Bytes of memory for each fetched byte that the call needs in the end. */
  readonly copies: number;
  /** Bytes that the call holds beside its files. */
  readonly heldBefore: number;
  /** Milliseconds for each file. */
  readonly longestMs: number;
  /** The hosts that they may be fetched from. */
  readonly hosts: RemoteOptions;
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
  readonly waiting: Cancellable;
  /** Makes what is kept of each file. Calls `hold` before with the bytes that this needs in addition. */
  readonly keep: (file: Downloaded, wanted: Wanted, hold: (bytes: number) => void) => KeptFile<Kept>;
}

/**
 * Fetches the files of a call one after the other, each URL once. The remaining bounds are then known, and few calls have
 * more than one file. The call holds memory for them, and in the end for all their copies.
 * @returns what is kept of the files, by their URLs
 * @throws {GatewayError} `invalid_value` with the path as its `param`, for the first file that cannot be fetched
 */
export async function fetchFiles<Wanted extends WantedFile, Kept>(
  services: Services,
  call: Call,
  { wanted, bounds, waiting, keep }: Fetching<Wanted, Kept>,
): Promise<ReadonlyMap<string, Kept>> {
  const { snapshot } = call.running;
  const rate = rateBound(snapshot);
  const deadline = performance.now() + timeLeft(call);
  const files = new Map<string, Kept>();
  const { copies, hosts, longestMs } = bounds;
  const most = Math.min(bounds.maxBytes, Math.floor(snapshot.limits.bufferedBytes / (fetchShare * copies)));
  let maxBytes = most;
  let held = 0;
  const holdAll = (bytes: number): void => {
    if (!call.accounted) setHeldBytes(services, call, bounds.heldBefore + bytes);
  };
  try {
    for (const each of wanted) {
      const { url, at } = each;
      if (files.has(url)) continue;
      const before = held;
      const hold = (bytes: number): void => holdAll(before + bytes);
      const timeoutMs = Math.min(longestMs, Math.max(1, deadline - performance.now()));
      const result = await new Promise<Downloaded | GatewayError>((resolve) => {
        const asked = { ...hosts, client: services.upstream, owner: call, maxBytes, timeoutMs, rate, hold };
        waiting.cancel = download(url, asked, resolve);
      });
      if (result instanceof GatewayError) throw named(result, at);
      const { kept, bytes } = keep(result, each, hold);
      maxBytes -= result.bytes.length;
      held += bytes;
      files.set(url, kept);
    }
    holdAll(copies * (most - maxBytes));
    return files;
  } catch (fault) {
    holdAll(0);
    throw fault;
  }
}

/** The error for a file, with the path of its URL. */
function named(error: GatewayError, at: string | null): GatewayError {
  if (error.status === 503) return error;
  const message = at === null ? error.message : `${at}: ${error.message}`;
  return new GatewayError(error.kind, message, { param: at, cause: error.cause });
}

/**
 * Returns where a file may be fetched from whose URL an upstream has given: at a private address only if the config allows
 * it, or from the upstream itself, which is reached there anyway and in the same way.
 */
export function fileHosts(call: Pick<Call, 'running'>, upstream: Upstream): RemoteOptions {
  const { origin } = upstream;
  const privateOrigin = `${origin.secure ? 'https' : 'http'}://${origin.authority}`;
  return { ...mediaHosts(call, upstream), isByClient: false, privateOrigin, ownRoute: origin };
}

/** Returns where a file may be fetched from whose URL a client has given, for an upstream that accepts only its bytes. */
export function mediaHosts({ running }: Pick<Call, 'running'>, { fetchPrivate }: Upstream): RemoteOptions {
  const { fetch } = running.snapshot;
  return { allowPrivate: fetchPrivate, isByClient: true, rules: fetch, proxy: fetch.proxy };
}
