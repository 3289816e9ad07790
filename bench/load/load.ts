import type { Caller } from '../callers.js';
import type { Process } from '../proc.js';

/** One run of a load client: as many requests as the target serves, on a fixed number of connections. */
export interface LoadPlan {
  readonly port: number;
  /** Use TLS, and accept any certificate. */
  readonly secure: boolean;
  readonly path: string;
  readonly bodyFile: string;
  readonly connections: number;
  readonly seconds: number;
  readonly core: number | null;
  readonly directory: string;
  /** The requests use these in turn. The name of the caller's model replaces that of the body. */
  readonly callers: readonly Caller[];
  /** Headers in addition to the content type and the key. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Descriptions of what went wrong; empty for a clean run. */
  readonly errors: readonly string[];
}

export interface LoadClient {
  readonly name: string;
  /** Starts the client in a separate process, so that its CPU time can be read while it runs. */
  readonly start: (
    plan: LoadPlan,
  ) => Promise<{ readonly process: Process; readonly result: Promise<LoadResult> }>;
}

/** Describes the counts that are not zero. */
export function describeErrors(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`);
}
