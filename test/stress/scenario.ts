import type { Line } from './report.js';

/** A scenario at its full size, with the bounds that it has to keep. */
export interface Scenario {
  readonly name: string;
  /** After this it is given up. */
  readonly mostSeconds: number;
  /** @param seconds how long to go on, where that is a choice */
  run(seconds: number | null): Promise<readonly Line[]>;
}
