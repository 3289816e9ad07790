import type { Pinning, Process } from '../proc.js';

/** How a contender is reached and reaches its upstream, where that is not plain and without a log. */
export interface Wiring {
  /** Its clients speak TLS. Nothing where there is nothing in between. */
  readonly clientTls?: boolean;
  /** Its upstream speaks TLS. */
  readonly upstreamTls?: boolean;
  /** It writes a line into a file for every request. */
  readonly accessLog?: boolean;
  /** Its keys have limits of all kinds, which none reaches; the gateway's alone. */
  readonly limits?: boolean;
}

/** Where a contender sends its requests, and what it may use. */
export interface Setup extends Wiring {
  readonly upstreamPort: number;
  /** First segment of the upstream's path, which picks its answer: `json`, `late`, `sse`, `drip`, `gate`, `pace`, `events`, `stamped`, `media`, `realtime`. */
  readonly answer: string;
  readonly directory: string;
  readonly core: Pinning;
  /** One unless given. */
  readonly workers?: number;
  /** Keys and models in the gateway's config; 1 of each unless the work is about them. */
  readonly catalogue?: { readonly keys: number; readonly models: number };
}

/** A contender that is up. `process` is null for the upstream itself. */
export interface Running {
  readonly port: number;
  /** It speaks TLS to its clients. */
  readonly secure: boolean;
  /** What stands before `/v1` in its paths. */
  readonly prefix: string;
  /** Of chat completions. */
  readonly path: string;
  readonly process: Process | null;
  /** What it wants in each request beside what the work sends. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Its answers are not the upstream's bytes even where nothing is to be translated. */
  readonly rewrites?: boolean;
}

/** One of those who are measured: the gateway, a proxy, or nothing in between. */
export interface Contender {
  readonly name: string;
  /** Starts a fresh process; rejects when it cannot start. */
  readonly start: (setup: Setup) => Promise<Running>;
}
