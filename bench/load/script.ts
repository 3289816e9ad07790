import { fileURLToPath } from 'node:url';
import { type Process, startProcess } from '../proc.js';

/**
 * Starts one of the load clients of this directory in a separate process.
 * @param file name of its compiled file
 * @param plan passed as JSON; the client prints lines of JSON
 */
export function startScript(file: string, plan: object, core: number | null): Promise<Process> {
  return startProcess({
    name: file.replace('-process.js', ' client'),
    command: process.execPath,
    args: [fileURLToPath(new URL(`./${file}`, import.meta.url)), JSON.stringify(plan)],
    core,
  });
}

/** A load client that does its own warm-up. */
export interface WarmingClient<Result> {
  readonly process: Process;
  /** Resolves when the measurement begins. */
  readonly warm: Promise<void>;
  readonly result: () => Promise<Result>;
}

/** Like `startScript`, for a client that prints `null` when it is warm, and its result after the measurement. */
export async function startWarming<Result>(
  file: string,
  plan: object,
  core: number | null,
): Promise<WarmingClient<Result>> {
  const process = await startScript(file, plan, core);
  return {
    process,
    warm: readJson<null>(process).then(() => {}),
    result: () => readJson<Result>(process),
  };
}

/** Reads the next line of a client as JSON. */
export async function readJson<T>(client: Process): Promise<T> {
  return JSON.parse(await client.line()) as T;
}
