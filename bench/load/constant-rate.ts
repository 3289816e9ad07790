import type { Quantiles } from '../figures.js';
import { startWarming, type WarmingClient } from './script.js';

export interface ConstantRatePlan {
  readonly port: number;
  readonly path: string;
  /** So many keys and models as `callerAt` numbers them take their turn, call by call. */
  readonly callers: { readonly keys: number; readonly models: number };
  /** Its model is the first caller's. */
  readonly bodyFile: string;
  readonly connections: number;
  /** Requests per second. */
  readonly rate: number;
  /** Made before what is measured, each connection's next one once the last is answered. */
  readonly warmUpCalls: number;
  readonly seconds: number;
}

/** Latencies in microseconds. */
export interface ConstantRateResult {
  /** From the moment at which the schedule wanted the request sent. */
  readonly fromDue: Quantiles;
  /** From the client's turn for the request: without its own oversleeping, with any wait for a free connection. */
  readonly fromTurn: Quantiles;
  /** How late the client came to its turns. */
  readonly late: Quantiles;
  readonly errors: readonly string[];
}

/** Starts the constant-rate client in a process of its own. */
export function startConstantRate(
  plan: ConstantRatePlan,
  core: number | null,
): Promise<WarmingClient<ConstantRateResult>> {
  return startWarming('constant-rate-process.js', plan, core);
}
