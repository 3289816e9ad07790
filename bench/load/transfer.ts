import type { Process } from '../proc.js';
import { readJson, startScript } from './script.js';

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
export async function startTransfer(
  plan: TransferPlan,
  core: number | null,
): Promise<{
  readonly process: Process;
  readonly warm: Promise<void>;
  readonly result: () => Promise<TransferResult>;
}> {
  const file = plan.direction === 'down' ? 'downloads-process.js' : 'uploads-process.js';
  const process = await startScript(file, plan, core);
  return {
    process,
    warm: readJson<null>(process).then(() => {}),
    result: () => readJson<TransferResult>(process),
  };
}
