import { readJson, startScript } from './script.js';

export interface SlowReadersPlan {
  readonly port: number;
  readonly path: string;
  readonly key: string;
  readonly readers: number;
  readonly bytesPerSecond: number;
  readonly seconds: number;
}

export interface SlowReadersResult {
  readonly bytes: number;
  /** Readers whose connection ended before they closed it. */
  readonly ended: number;
}

/** Runs the slow readers in a separate process, from start to end. */
export async function readSlowly(plan: SlowReadersPlan, core: number | null): Promise<SlowReadersResult> {
  const process = await startScript('slow-readers-process.js', plan, core);
  const result = await readJson<SlowReadersResult>(process);
  await process.exited;
  return result;
}
