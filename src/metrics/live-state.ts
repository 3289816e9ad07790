/*
 * JSON sent to the console's page over `GET /console/live`. Only plain data and no imports: the page's code, which does
 * not run in Node, uses the same types.
 *
 * The stream has three kinds of events: first one `history` with the points of the last hour, then a `point` for each
 * new one, and a `state` every two seconds.
 */

/** Seconds, estimated from the buckets of a histogram. Null if nothing was counted. */
export interface LatencyView {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** Traffic of all workers in an interval of about five seconds. */
export interface HistoryView {
  /** End of the interval, in Unix milliseconds. */
  readonly at: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** Requests answered with a status of 500 or above, or that failed at the upstream afterwards. */
  readonly errorsPerSecond: number;
  readonly inputTokensPerSecond: number;
  readonly outputTokensPerSecond: number;
  /** USD in the whole interval. */
  readonly cost: number;
  readonly firstByte: LatencyView;
  readonly duration: LatencyView;
  /** The gateway's own part of the duration. */
  readonly own: LatencyView;
  /** At the end of the interval. */
  readonly openRequests: number;
  readonly openSockets: number;
}

/** Counts since the gateway started, equal to those of `/metrics`. */
export interface Counts {
  readonly requests: number;
  /** As in `HistoryView`. */
  readonly errors: number;
  /** Requests answered with a status from 400 to 499. */
  readonly refusals: number;
}

export interface TokenView {
  /** Input includes cached tokens, and output those for reasoning. */
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly reasoning: number;
}

export interface ModelView extends Counts {
  readonly name: string;
  readonly tokens: TokenView;
  readonly costUsd: number;
  readonly firstByte: LatencyView;
}

export interface ProtocolView extends Counts {
  readonly name: string;
  readonly duration: LatencyView;
}

/** Its errors are requests answered with a status of 500 or above. */
export interface KeyTrafficView extends Counts {
  readonly name: string;
}

/** `cooling`: healthy, but the target asked not to be called for a while. */
export type TargetStateView = 'closed' | 'cooling' | 'open' | 'half-open';

export interface TargetView {
  /** `upstream/model` */
  readonly name: string;
  /** The worst state that a worker reports. */
  readonly state: TargetStateView;
  /** Number of workers in that state. 0 if none knows the target, which then belongs to an earlier config. */
  readonly workersInState: number;
  readonly inFlight: number;
  readonly attempts: number;
  /** Failed attempts by result. */
  readonly failures: Readonly<Record<string, number>>;
  readonly retries: number;
  /** Last failure that a worker has recorded since its start. Null if there was none. */
  readonly lastFailure: FailureView | null;
}

export interface FailureView {
  /** Unix milliseconds. */
  readonly at: number;
  /** In the gateway's words. Never an upstream's body. */
  readonly message: string;
}

/** A finished call. Times are in milliseconds. */
export interface RecentRequestView {
  readonly id: string;
  /** End of the call, in Unix milliseconds. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly protocol: string | null;
  readonly model: string | null;
  readonly key: string | null;
  readonly target: string | null;
  readonly status: number;
  readonly outcome: string;
  /** Kind of the gateway's error. Null if there was none. */
  readonly error: string | null;
  readonly durationMs: number;
  /** Null if no upstream answered. */
  readonly firstByteMs: number | null;
  /** The gateway's own part of the duration. Null if unknown. */
  readonly ownMs: number | null;
  readonly retries: number;
  /** Members of the request that its translation dropped. */
  readonly leftOut: readonly string[];
  /** Members of the answer that its translation dropped. */
  readonly lostInAnswer: readonly string[];
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface GatewayView {
  readonly version: string;
  readonly node: string;
  readonly url: string;
  readonly demo: boolean;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Why requests are not served. Null while they are. */
  readonly notReady: string | null;
  readonly workers: { readonly wanted: number; readonly serving: number; readonly restarts: number };
  readonly configGeneration: number;
}

/** Current numbers, summed up over all workers. */
export interface MomentView {
  readonly openRequests: number;
  readonly openSockets: number;
  readonly upstreamConnections: { readonly open: number; readonly busy: number; readonly waiting: number };
  readonly bufferedBytes: number;
  readonly ledgerWaiting: number;
  readonly residentBytes: number;
  /** Of the worst worker, in seconds. */
  readonly loopDelay: { readonly p50: number; readonly p99: number; readonly max: number };
}

export interface LiveState {
  /** Unix milliseconds. */
  readonly at: number;
  readonly gateway: GatewayView;
  readonly now: MomentView;
  readonly totals: Counts & {
    readonly tokens: TokenView;
    readonly costUsd: number;
    readonly bytesIn: number;
    readonly bytesOut: number;
    readonly limitRefusals: Readonly<Record<string, number>>;
    readonly firstByte: LatencyView;
    readonly duration: LatencyView;
    readonly own: LatencyView;
  };
  /** Sorted by requests, most first. At most 200 of each list. */
  readonly models: readonly ModelView[];
  readonly protocols: readonly ProtocolView[];
  readonly keys: readonly KeyTrafficView[];
  readonly targets: readonly TargetView[];
  /** Latest requests of all workers, newest first. At most 100. */
  readonly requests: readonly RecentRequestView[];
}
