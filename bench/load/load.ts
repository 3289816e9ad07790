import type { Caller } from '../callers.js';
import type { Process } from '../proc.js';

/** One run of a load client: as many requests as the target takes, on a fixed number of connections. */
export interface LoadPlan {
  readonly port: number;
  /** Over TLS, with whatever certificate. */
  readonly secure: boolean;
  readonly path: string;
  readonly bodyFile: string;
  readonly connections: number;
  readonly seconds: number;
  readonly core: number | null;
  readonly directory: string;
  /** The requests take these in turn; the body's own model name is replaced by theirs. */
  readonly callers: readonly Caller[];
  /** Beside the content type and the key. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** What went wrong, in words; empty for a clean run. */
  readonly errors: readonly string[];
}

export interface LoadClient {
  readonly name: string;
  /** Starts the client in a process of its own, so that its CPU time can be read while it runs. */
  readonly start: (
    plan: LoadPlan,
  ) => Promise<{ readonly process: Process; readonly result: Promise<LoadResult> }>;
}

/** Words for the counts that are not zero. */
export function describeErrors(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`);
}
