import type { Origin } from '../upstream/origin.js';

/** Where a model can be offered. */
export const protocols = [
  'chat',
  'responses',
  'messages',
  'generateContent',
  'completions',
  'embeddings',
  'rerank',
  'moderations',
  'audio',
  'images',
  'video',
  'realtime',
] as const;
export type Protocol = (typeof protocols)[number];

export const upstreamKinds = [
  'chat',
  'messages',
  'generateContent',
  'vendork',
  'vendorj',
  'generic',
  'simulator',
] as const;
export type UpstreamKind = (typeof upstreamKinds)[number];

/** One place that answers: an origin, the path under it, and how to sign in. */
export interface Upstream {
  readonly name: string;
  readonly kind: UpstreamKind;
  readonly origin: Origin;
  /** Path prefix of the base URL without a trailing slash: `/v1`, or empty. */
  readonly basePath: string;
  /** Ask for a stream's usage where the client did not, and hide it from the client again. */
  readonly injectUsage: boolean;
  readonly apiKeys: readonly string[];
  /** Extra request headers, lower-case names. */
  readonly headers: readonly (readonly [string, string])[];
}

export interface Target {
  readonly upstream: Upstream;
  /** The model's name at the upstream. */
  readonly model: string;
  /** Lower is tried first. */
  readonly priority: number;
  readonly weight: number;
}

export interface Model {
  readonly name: string;
  readonly protocols: ReadonlySet<Protocol>;
  /** Sorted by priority. */
  readonly targets: readonly Target[];
  /** Unix seconds: when this catalogue first knew the model. */
  readonly created: number;
  /** USD per million tokens, or null. */
  readonly price: { readonly input: number; readonly output: number } | null;
}

export interface Key {
  readonly id: string;
  /** SHA-256 of the key, lower-case hex. */
  readonly hash: string;
  readonly groups: readonly string[];
  /** Every model that the key's groups open, by name, sorted by name. */
  readonly models: ReadonlyMap<string, Model>;
  /** Unix milliseconds, or null for never. */
  readonly expiresAt: number | null;
}

export interface Timeouts {
  /** For a request body to arrive whole. */
  readonly bodyMs: number;
  /** Silence on a stream after which the gateway sends a keep-alive; 0 for never. */
  readonly keepAliveMs: number;
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
  readonly drainMs: number;
}

/** Real vendor words beside the neutral ones: `{vendorc: ['anthropic'], …}`. */
export interface VendorWords {
  readonly vendorc: readonly string[];
  readonly vendorg: readonly string[];
  readonly vendork: readonly string[];
  readonly vendorj: readonly string[];
}

/** The running config: frozen, swapped whole on reload, kept by each call from its start to its end. */
export interface Snapshot {
  readonly demo: boolean;
  readonly listen: {
    readonly host: string;
    readonly port: number;
    readonly tls: { readonly cert: string; readonly key: string } | null;
  };
  /** 0 means one per core. */
  readonly workers: number;
  readonly vendors: VendorWords;
  readonly limits: {
    readonly bodyBytes: number;
    readonly uploadBytes: number;
    readonly headerBytes: number;
    /** Request bodies held in memory by one worker at any moment, in bytes. */
    readonly bufferedBytes: number;
  };
  readonly timeouts: Timeouts;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly models: ReadonlyMap<string, Model>;
  /** By SHA-256, lower-case hex. */
  readonly keys: ReadonlyMap<string, Key>;
}
