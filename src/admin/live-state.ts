/*
 * What the console's page is told over `GET /console/live`, as JSON. Only plain data and no imports: the page's code,
 * which knows nothing of Node, takes the same types.
 *
 * The stream has three kinds of events: one `history` first, with the points of the last hour; a `point` for each new
 * one; and a `state` every two seconds.
 */

/** In seconds, estimated from the buckets of a histogram; null where nothing was counted. */
export interface LatencyView {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** What happened in a stretch of time of about five seconds, over all workers. */
export interface HistoryView {
  /** Unix milliseconds: the end of the stretch. */
  readonly at: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** Requests that were answered with a status of 500 and above, or failed at the upstream afterwards. */
  readonly errorsPerSecond: number;
  readonly inputTokensPerSecond: number;
  readonly outputTokensPerSecond: number;
  /** USD, in the whole stretch. */
  readonly cost: number;
  readonly firstByte: LatencyView;
  readonly duration: LatencyView;
  /** The gateway's own share of the duration. */
  readonly own: LatencyView;
  /** At the end of the stretch. */
  readonly openRequests: number;
  readonly openSockets: number;
}

/** Counts since the gateway started: the same numbers as those of `/metrics`. */
export interface Counts {
  readonly requests: number;
  /** As in `HistoryView`. */
  readonly errors: number;
  /** Requests that were answered with a status from 400 to 499. */
  readonly refusals: number;
}

export interface TokenView {
  /** Cached ones are part of the input, and those for reasoning part of the output. */
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

/** Its errors are the requests that were answered with a status of 500 and above. */
export interface KeyTrafficView extends Counts {
  readonly name: string;
}

/** `cooling`: well, but it asked to be left alone. */
export type TargetStateView = 'closed' | 'cooling' | 'open' | 'half-open';

export interface TargetView {
  /** `upstream/model` */
  readonly name: string;
  /** What the worst-off worker says. */
  readonly state: TargetStateView;
  /** Workers that say so; 0 where none knows the target, which is then one of a config before this. */
  readonly workersInState: number;
  readonly inFlight: number;
  readonly attempts: number;
  /** Attempts by their result, those that went well apart. */
  readonly failures: Readonly<Record<string, number>>;
  readonly retries: number;
  /** The last failure that any worker has seen since it started; null where there was none. */
  readonly lastFailure: FailureView | null;
}

export interface FailureView {
  /** Unix milliseconds. */
  readonly at: number;
  /** In the gateway's words, never an upstream's body. */
  readonly message: string;
}

/** A call that has ended. Times in milliseconds. */
export interface RecentRequestView {
  readonly id: string;
  /** Unix milliseconds: its end. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly protocol: string | null;
  readonly model: string | null;
  readonly key: string | null;
  readonly target: string | null;
  readonly status: number;
  readonly outcome: string;
  /** Kind of the gateway's error; null where there was none. */
  readonly error: string | null;
  readonly durationMs: number;
  /** Null where no answer came from an upstream. */
  readonly firstByteMs: number | null;
  /** The gateway's own share; null where it is not known. */
  readonly ownMs: number | null;
  readonly retries: number;
  /** Members of the request that its translation left out. */
  readonly leftOut: readonly string[];
  /** The same of the answer. */
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
  /** Null while requests are served, or why not. */
  readonly notReady: string | null;
  readonly workers: { readonly wanted: number; readonly serving: number; readonly restarts: number };
  readonly configGeneration: number;
}

/** Numbers of the moment over all workers. */
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
  /** Those with the most requests first; at most 200 of each. */
  readonly models: readonly ModelView[];
  readonly protocols: readonly ProtocolView[];
  readonly keys: readonly KeyTrafficView[];
  readonly targets: readonly TargetView[];
  /** The last ones of every worker, newest first; at most 100. */
  readonly requests: readonly RecentRequestView[];
}
