import type { Line } from './report.js';

/** A scenario at its full size, with its bounds. */
export interface Scenario {
  readonly name: string;
  /** Time limit. */
  readonly mostSeconds: number;
  /** @param seconds duration, if it can be chosen */
  run(seconds: number | null): Promise<readonly Line[]>;
}
