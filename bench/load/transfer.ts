import { startWarming, type WarmingClient } from './script.js';

/** Bodies of megabytes on a few connections, one after the other on each. */
export interface TransferPlan {
  readonly direction: 'down' | 'up';
  readonly port: number;
  readonly path: string;
  readonly key: string;
  /** The model that an upload names. */
  readonly model: string;
  readonly connections: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface TransferResult {
  /** What came in the time that was measured, or has left. */
  readonly bytesPerSecond: number;
  /** Transfers that were complete, the warm-up among them. */
  readonly complete: number;
  readonly errors: readonly string[];
}

/** Starts the client in a process of its own; `warm` resolves when the time that is measured begins. */
export function startTransfer(
  plan: TransferPlan,
  core: number | null,
): Promise<WarmingClient<TransferResult>> {
  const file = plan.direction === 'down' ? 'downloads-process.js' : 'uploads-process.js';
  return startWarming<TransferResult>(file, plan, core);
}
