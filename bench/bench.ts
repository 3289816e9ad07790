import type { Contender } from './contenders/contender.js';
import type { LoadClient } from './load/load.js';
import type { Machine } from './machine.js';
import type { Options } from './options.js';

/** Cores that a run is pinned to; null leaves a process unpinned. */
export interface Cores {
  readonly contender: number | null;
  readonly load: number | null;
  readonly upstream: number | null;
}

/** What every work gets. */
export interface Bench {
  readonly options: Options;
  readonly machine: Machine;
  readonly cores: Cores;
  /** Temporary directory for configs, bodies and logs. */
  readonly directory: string;
  readonly load: LoadClient;
  readonly contenders: readonly Contender[];
  /** Path of the gateway's compiled main.js. */
  readonly main: string;
  /** Prints a line of progress. */
  readonly progress: (text: string) => void;
}

/** The result of a work: a table, the sentences below it, and every figure for the JSON file. */
export interface WorkReport {
  readonly work: string;
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notes: readonly string[];
  readonly figures: unknown;
}

export interface Work {
  readonly name: string;
  /** False for a work that runs only if it is named. */
  readonly byDefault: boolean;
  readonly run: (bench: Bench) => Promise<WorkReport>;
}
