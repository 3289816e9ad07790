import type { Quantiles } from '../figures.js';
import { startWarming, type WarmingClient } from './script.js';

export interface ConstantRatePlan {
  readonly port: number;
  readonly path: string;
  /** Number of keys and models of `callerAt`, which take turns call by call. */
  readonly callers: { readonly keys: number; readonly models: number };
  /** The body names the first caller's model. */
  readonly bodyFile: string;
  readonly connections: number;
  /** Requests per second. */
  readonly rate: number;
  /** Calls before the measurement; each connection sends its next one after the answer to the last. */
  readonly warmUpCalls: number;
  readonly seconds: number;
}

/** Latencies in microseconds. */
export interface ConstantRateResult {
  /** From the scheduled time of the request. */
  readonly fromDue: Quantiles;
  /**
   * From the time at which the client handles the request: excludes its own lateness, includes the wait for a free
   * connection.
   */
  readonly fromTurn: Quantiles;
  /** How late the client is compared with the schedule. */
  readonly late: Quantiles;
  readonly errors: readonly string[];
}

/** Starts the constant-rate client in a separate process. */
export function startConstantRate(
  plan: ConstantRatePlan,
  core: number | null,
): Promise<WarmingClient<ConstantRateResult>> {
  return startWarming('constant-rate-process.js', plan, core);
}
