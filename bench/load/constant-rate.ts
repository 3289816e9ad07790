import type { Process } from '../proc.js';
import { readJson, startScript } from './script.js';

export interface ConstantRatePlan {
  readonly port: number;
  readonly path: string;
  readonly key: string;
  readonly bodyFile: string;
  readonly connections: number;
  /** Requests per second. */
  readonly rate: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** In microseconds. */
export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

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
export async function startConstantRate(
  plan: ConstantRatePlan,
  core: number | null,
): Promise<{ readonly process: Process; readonly result: Promise<ConstantRateResult> }> {
  const process = await startScript('constant-rate-process.js', plan, core);
  return { process, result: readJson<ConstantRateResult>(process) };
}
