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
  /** Bytes that were received or sent during the measurement. */
  readonly bytesPerSecond: number;
  /** Complete transfers, including those of the warm-up. */
  readonly complete: number;
  readonly errors: readonly string[];
}

/** Starts the client in a separate process. `warm` resolves when the measurement begins. */
export function startTransfer(
  plan: TransferPlan,
  core: number | null,
): Promise<WarmingClient<TransferResult>> {
  const file = plan.direction === 'down' ? 'downloads-process.js' : 'uploads-process.js';
  return startWarming<TransferResult>(file, plan, core);
}
