import type { Pinning, Process } from '../proc.js';

/** How a contender is reached and reaches its upstream. Default: without TLS and without a log. */
export interface Wiring {
  /** Clients use TLS. Ignored by `direct`. */
  readonly clientTls?: boolean;
  /** The upstream uses TLS. */
  readonly upstreamTls?: boolean;
  /** Write a line to a file for every request. */
  readonly accessLog?: boolean;
  /** Give every key limits of all kinds, which none of them reaches. Only the gateway has limits. */
  readonly limits?: boolean;
}

/** The upstream of a contender, and the resources that it may use. */
export interface Setup extends Wiring {
  readonly upstreamPort: number;
  /**
   * First segment of the upstream's path, which selects its answer: `json`, `late`, `sse`, `drip`, `gate`, `pace`,
   * `events`, `stamped`, `media`, `realtime`.
   */
  readonly answer: string;
  readonly directory: string;
  readonly core: Pinning;
  /** Default: one. */
  readonly workers?: number;
  /** Numbers of keys and models in the gateway's config. Default: 1 of each. */
  readonly catalogue?: { readonly keys: number; readonly models: number };
}

/** A running contender. `process` is null for the upstream itself. */
export interface Running {
  readonly port: number;
  /** Its clients use TLS. */
  readonly secure: boolean;
  /** Prefix of its paths, before `/v1`. */
  readonly prefix: string;
  /** Path of chat completions. */
  readonly path: string;
  readonly process: Process | null;
  /** Headers that it needs in each request, in addition to those of the work. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Its answers differ from the upstream's bytes even if nothing is translated. */
  readonly rewrites?: boolean;
}

/** Something that is measured: the gateway, a proxy, or the upstream without anything in front of it. */
export interface Contender {
  readonly name: string;
  /** Starts a fresh process. Rejects if it cannot start. */
  readonly start: (setup: Setup) => Promise<Running>;
}
